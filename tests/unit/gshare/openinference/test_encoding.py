"""Outputs as JSON and in the binary form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gshare.openinference.decoding import NUMPY, Source, decode_tensor
from gshare.openinference.encoding import encode_tensor, stack_rows
from gshare.openinference.messages import InputHead
from gshare.tensors import ANY, Datatype, TensorSpec

NUMBERS = [kind for kind in Datatype if kind not in (Datatype.BYTES, Datatype.BF16)]


def back(spec: TensorSpec, rows: list[Any]) -> Any:
    """Through the binary form and back."""
    sent = encode_tensor(stack_rows([{spec.name: row} for row in rows], spec), spec, binary=True)
    assert sent.tensor.parameters == {"binary_data_size": len(sent.binary)}
    head = InputHead(name=spec.name, shape=tuple(sent.tensor.shape), datatype=sent.tensor.datatype)
    return decode_tensor(Source(head, memoryview(sent.binary)), spec)


@pytest.mark.parametrize("datatype", NUMBERS)
def test_numbers_survive_the_binary_form(datatype: Datatype) -> None:
    spec = TensorSpec("x", datatype, (2,))

    found = back(spec, [[0, 1], [1, 1]])

    assert found.dtype == NUMPY[datatype]
    assert found.tolist() == [[0, 1], [1, 1]]


def test_bytes_survive_the_binary_form_and_text_is_utf8() -> None:
    assert back(TensorSpec("x", Datatype.BYTES, (2, 1)), [[["é"], [b"\xff"]]]).tolist() == [[["é".encode()], [b"\xff"]]]


def test_bfloat16_is_rounded_to_the_nearest_even_and_always_binary() -> None:
    spec = TensorSpec("x", Datatype.BF16, (ANY,))
    values = [1.0, 1.00390625, 1.01171875, -3.0e38, 0.1]

    sent = encode_tensor(stack_rows([{"x": values}], spec), spec, binary=False)

    assert np.frombuffer(sent.binary, "<u2").tolist() == [0x3F80, 0x3F80, 0x3F82, 0xFF62, 0x3DCD]


def test_json_data_is_flat() -> None:
    spec = TensorSpec("x", Datatype.FP32, (1, 2))

    sent = encode_tensor(stack_rows([{"x": [[1, 2]]}, {"x": [[3, 4]]}], spec), spec, binary=False)

    assert (sent.tensor.shape, sent.tensor.data, sent.binary) == ([2, 1, 2], [1.0, 2.0, 3.0, 4.0], b"")
