"""The protocol's bodies by hand, so that tests of the server lean on no client's habits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gshare.openinference.decoding import NUMPY
from gshare.openinference.reading import HEAD_LENGTH
from gshare.tensors import Datatype


@dataclass(frozen=True, slots=True)
class Body:
    """A request's body and the headers that go with it."""

    data: bytes
    headers: dict[str, str]


def binary_elements(elements: Sequence[bytes]) -> bytes:
    """BYTES as the binary extension has them: each behind its length."""
    return b"".join(len(element).to_bytes(4, "little") + element for element in elements)


def tensor(name: str, datatype: str, shape: Sequence[int], **rest: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": list(shape), **rest}


def json_body(*inputs: dict[str, Any], **rest: Any) -> Body:
    """All in JSON."""
    return Body(json.dumps({"inputs": inputs, **rest}).encode(), {"Content-Type": "application/json"})


def binary_body(elements: Sequence[bytes], **rest: Any) -> Body:
    """Items of `input`, binary, and binary outputs."""
    tail = binary_elements(elements)
    item = tensor("input", "BYTES", [len(elements)], parameters={"binary_data_size": len(tail)})
    parameters = {"binary_data_output": True, **rest.pop("parameters", {})}
    head = json.dumps({"inputs": [item], "parameters": parameters, **rest}).encode()
    return Body(head + tail, {HEAD_LENGTH: str(len(head))})


def read_outputs(body: bytes, headers: Mapping[str, str]) -> dict[str, Any]:
    """Each output by name: an array of numbers, or for BYTES one of bytes."""
    length = int(headers.get(HEAD_LENGTH, len(body)))
    head, tail = json.loads(body[:length]), body[length:]
    found: dict[str, Any] = {}
    for one in head["outputs"]:
        size = one.get("parameters", {}).get("binary_data_size")
        if size is not None:
            found[one["name"]] = _from_binary(tail[:size], one)
            tail = tail[size:]
        else:
            texts = one["datatype"] == Datatype.BYTES
            values = [text.encode() for text in one["data"]] if texts else one["data"]
            found[one["name"]] = np.array(values, object if texts else NUMPY[one["datatype"]]).reshape(one["shape"])
    assert not tail
    return found


def _from_binary(data: bytes, head: dict[str, Any]) -> Any:
    if head["datatype"] != Datatype.BYTES:
        return np.frombuffer(data, NUMPY[head["datatype"]]).reshape(head["shape"])
    elements = []
    while data:
        end = 4 + int.from_bytes(data[:4], "little")
        elements.append(data[4:end])
        data = data[end:]
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(head["shape"])
