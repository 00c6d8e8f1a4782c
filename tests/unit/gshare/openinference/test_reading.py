"""Bodies of inference requests: what fits is read exactly, everything else is refused with its name."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import numpy as np
import pytest
from gshare.errors import BadInput
from gshare.openinference.decoding import NUMPY
from gshare.openinference.reading import HEAD_LENGTH, Inference, read_inference
from gshare.tensors import ANY, Datatype, Signature, TensorSpec
from werkzeug.datastructures import Headers

PIXELS = Signature(
    inputs=(TensorSpec("pixels", Datatype.FP32, (2, ANY)),), outputs=(TensorSpec("label", Datatype.BYTES, (ANY,)),)
)
PAIR = Signature(inputs=(TensorSpec("a", Datatype.INT8), TensorSpec("b", Datatype.BYTES, (ANY,))))
NUMBERS = [kind for kind in Datatype if kind not in (Datatype.BYTES, Datatype.BF16, Datatype.BOOL)]


def one(name: str, datatype: str, shape: list[int], **rest: Any) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "shape": shape, **rest}


def text(*values: Any, shape: list[int] | None = None) -> dict[str, Any]:
    return one("input", "BYTES", [len(values)] if shape is None else shape, data=list(values))


def read(
    head: dict[str, Any] | bytes, tail: bytes = b"", *, signature: Signature = PIXELS, length: str | None = None
) -> Inference:
    raw = head if isinstance(head, bytes) else json.dumps(head).encode()
    headers = Headers({HEAD_LENGTH: length if length is not None else str(len(raw))} if tail or length else {})
    return read_inference(raw + tail, headers, signature)


def binary(*elements: bytes) -> bytes:
    return b"".join(len(element).to_bytes(4, "little") + element for element in elements)


def pixels(array: np.ndarray[Any, Any], **changes: Any) -> tuple[dict[str, Any], bytes]:
    data = array.astype("<f4").tobytes()
    head = one("pixels", "FP32", list(array.shape), parameters={"binary_data_size": len(data)})
    return {"inputs": [head | changes]}, data


def test_text_of_json_arrives_as_bytes_with_id_and_parameters() -> None:
    found = read({"id": "x7", "parameters": {"top_k": 3}, "inputs": [text("é", "b\x00\n")]})

    assert found.tensors["input"].tolist() == ["é".encode(), b"b\x00\n"]
    assert (found.id, found.parameters, found.items) == ("x7", {"top_k": 3}, 2)
    assert [(wanted.spec.name, wanted.binary) for wanted in found.outputs] == [("label", False), ("reply", False)]


def test_rows_of_one_element_are_taken_for_items_as_other_servers_want_them() -> None:
    flat = read({"inputs": [text("a", "b", shape=[2, 1])]})
    nested = read({"inputs": [text(["a"], ["b"], shape=[2, 1])]})

    assert flat.tensors["input"].tolist() == nested.tensors["input"].tolist() == [[b"a"], [b"b"]]


def test_binary_elements_are_any_bytes() -> None:
    data = binary(b"\xff\xd8\x00", b"", b"{}")

    found = read({"inputs": [one("input", "BYTES", [3], parameters={"binary_data_size": len(data)})]}, data)

    assert found.tensors["input"].tolist() == [b"\xff\xd8\x00", b"", b"{}"]


def test_a_json_part_of_no_length_makes_the_whole_body_the_one_item_and_all_outputs_binary() -> None:
    found = read(b"", b"\xff\xd8", length="0")

    assert found.tensors["input"].tolist() == [b"\xff\xd8"]
    assert all(wanted.binary for wanted in found.outputs)


@pytest.mark.parametrize("datatype", NUMBERS)
def test_numbers_are_the_same_as_json_flat_or_nested_and_as_binary(datatype: Datatype) -> None:
    signature = Signature(inputs=(TensorSpec("x", datatype, (2, 2)),))
    kind = NUMPY[datatype]
    extremes = (
        [np.finfo(kind).max, np.finfo(kind).tiny] if kind.kind == "f" else [np.iinfo(kind).max, np.iinfo(kind).min]
    )
    array = np.array([[[*extremes], [0, 1]], [[2, 3], [4, 5]]], kind)
    data = array.tobytes()

    flat = read({"inputs": [one("x", datatype, [2, 2, 2], data=array.ravel().tolist())]}, signature=signature)
    nested = read({"inputs": [one("x", datatype, [2, 2, 2], data=array.tolist())]}, signature=signature)
    behind = read(
        {"inputs": [one("x", datatype, [2, 2, 2], parameters={"binary_data_size": len(data)})]},
        data,
        signature=signature,
    )

    for found in (flat, nested, behind):
        assert found.tensors["x"].dtype == kind
        assert np.array_equal(found.tensors["x"], array)


def test_bfloat16_is_read_as_float32_of_equal_value() -> None:
    signature = Signature(inputs=(TensorSpec("x", Datatype.BF16, (4,)),))
    data = np.array([0x3FC0, 0xC000, 0x7F7F, 0x0001], "<u2").tobytes()

    found = read({"inputs": [one("x", "BF16", [1, 4], parameters={"binary_data_size": 8})]}, data, signature=signature)

    assert found.tensors["x"].tolist() == [[1.5, -2.0, float.fromhex("0x1.fep127"), float.fromhex("0x1p-133")]]


def test_truth_values_are_no_numbers() -> None:
    signature = Signature(inputs=(TensorSpec("x", Datatype.BOOL),))

    found = read({"inputs": [one("x", "BOOL", [2], data=[True, False])]}, signature=signature)

    assert found.tensors["x"].tolist() == [True, False]
    with pytest.raises(BadInput, match="Expected `bool`, got `int`"):
        read({"inputs": [one("x", "BOOL", [2], data=[1, 0])]}, signature=signature)


def test_several_inputs_take_their_binary_pieces_in_order() -> None:
    strings = binary(b"p", b"q", b"r", b"s")
    heads = [
        one("b", "BYTES", [2, 2], parameters={"binary_data_size": len(strings)}),
        one("a", "INT8", [2], parameters={"binary_data_size": 2}),
    ]

    found = read({"inputs": heads}, strings + b"\x05\xff", signature=PAIR)

    assert found.tensors["b"].tolist() == [[b"p", b"q"], [b"r", b"s"]]
    assert found.tensors["a"].tolist() == [5, -1]


@pytest.mark.parametrize(
    ("parameters", "outputs", "expected"),
    [
        ({"binary_data_output": True}, [], [("label", True), ("reply", True)]),
        ({}, [{"name": "reply"}], [("reply", False)]),
        (
            {},
            [{"name": "reply", "parameters": {"binary_data": True}}, {"name": "label"}],
            [("reply", True), ("label", False)],
        ),
        ({"binary_data_output": True}, [{"name": "label", "parameters": {"binary_data": False}}], [("label", False)]),
    ],
)
def test_outputs_are_those_asked_for_in_the_form_asked_for(
    parameters: dict[str, Any], outputs: list[dict[str, Any]], expected: list[tuple[str, bool]]
) -> None:
    found = read({"inputs": [text("a")], "parameters": parameters, "outputs": outputs})

    assert [(wanted.spec.name, wanted.binary) for wanted in found.outputs] == expected


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b'{"zz": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "maximum recursion depth"),
        (b'{"inputs": [{"name": "input", "datatype": "BYTES", "shape": [1], "data": ' + b"[" * 100_000, "recursion"),
        (b"[]", "Expected `object`, got `array`"),
        (b"{}", "missing required field `inputs`"),
        ({"inputs": []}, "length >= 1"),
        ({"inputs": [text("a")] * 65}, "length <= 64"),
        ({"inputs": [text("a")] * 2}, "inputs 'input', 'input': this function takes input or pixels"),
        ({"inputs": [one("zz" * 100, "FP32", [1], data=[1])]}, "…: this function takes input or pixels"),
        ({"id": 7, "inputs": [text("a")]}, "Expected `str`, got `int` - at `$.id`"),
        ({"inputs": [text("a")], "parameters": {"x": [1]}}, "`$.parameters[...]`"),
        (b'{"inputs": [], "parameters": {"x": ' + b"9" * 5000 + b"}}", "is not one of the protocol"),
        ({"inputs": [text("a")], "outputs": [{"name": "zz"}]}, "output 'zz': there are label, reply"),
        ({"inputs": [text("a")], "outputs": [{"name": "reply"}] * 2}, "output 'reply': is asked for twice"),
        ({"inputs": [text("a")], "outputs": [{"name": "reply", "parameters": {"classification": 2}}]}, "only bin"),
        ({"inputs": [text("a")], "parameters": {"binary_data_output": 1}}, "binary_data_output is 1; true or false"),
        ({"inputs": [text("a", shape=[0])]}, "shape [0]; it takes [-1]"),
        ({"inputs": [text("a", shape=[-1])]}, "shape [-1]; it takes [-1], -1 being 1 or more"),
        ({"inputs": [text("a", shape=[])]}, "shape []"),
        ({"inputs": [text("a", shape=[1, 2])]}, "shape [1, 2]; it takes [-1]"),
        ({"inputs": [text("a", shape=[1] * 9)]}, "length <= 8"),
        ({"inputs": [text("a", shape=[2**62])]}, "items in one request; at most 128"),
        ({"inputs": [text("a", shape=[2**80])]}, "Expected `int` <= 9223372036854775807"),
        ({"inputs": [text("a", shape=[2])]}, "data does not fit its shape [2]"),
        ({"inputs": [text("a", "b", shape=[1])]}, "data does not fit its shape [1]"),
        ({"inputs": [text(3)]}, "Expected `str`, got `int`"),
        ({"inputs": [one("input", "FP32", [1], data=[1])]}, "datatype 'FP32'; it takes BYTES"),
        ({"inputs": [one("input", "bytes", [1], data=["a"])]}, "datatype 'bytes'; it takes BYTES"),
        ({"inputs": [one("input", "BYTES", [1])]}, "has neither data nor a binary_data_size"),
        ({"inputs": [one("input", "BYTES", [1], parameters={"shared_memory_region": "r"})]}, "is not supported"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2], data=[1, 2, 3])]}, "3 numbers; shape [1, 2, 2] takes 4"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2], data=[[[1, 2, 3, 4]]])]}, "data has shape [1, 1, 4]"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2], data=[[[1, 2, 3], [4]]])]}, "inhomogeneous"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2], data=[[[[1, 2], [3, 4]]]])]}, "Expected `float`, got `array`"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2], data=[1, 2, 3, "4"])]}, "Expected `float`, got `str`"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2], data=[1, 2, 3, 1e39])]}, "holds NaN or infinity"),
        (b'{"inputs": [{"name": "pixels", "datatype": "FP32", "shape": [1, 2, 1], "data": [1, NaN]}]}', "is not JSON"),
        ({"inputs": [one("pixels", "FP32", [2**62, 2, 2**62], data=[1])]}, "items in one request"),
        ({"inputs": [one("pixels", "FP32", [1, 2, 2**60], data=[1])]}, "1 numbers; shape"),
        ({"inputs": [one("pixels", "FP32", [1, 3, 2], data=[1] * 6)]}, "shape [1, 3, 2]; it takes [-1, 2, -1]"),
    ],
    ids=lambda value: None if isinstance(value, str) else "body",
)  # fmt: skip
def test_what_does_not_fit_is_refused_by_name(head: dict[str, Any] | bytes, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        read(head)

    assert says in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("changes", "tail", "says"),
    [
        ({}, b"", "binary_data_size is 16; a number of bytes, 0–0"),
        ({}, bytes(17), "add up to 16 bytes; 17 follow"),
        ({"parameters": {"binary_data_size": -16}}, bytes(16), "binary_data_size is -16"),
        ({"parameters": {"binary_data_size": True}}, bytes(16), "binary_data_size is True"),
        ({"parameters": {"binary_data_size": "16"}}, bytes(16), "binary_data_size is '16'"),
        ({"parameters": {"binary_data_size": 2**63}}, bytes(16), "binary_data_size is 9223372036854775808"),
        ({"parameters": {"binary_data_size": 10**4000}}, bytes(16), "000…; a number of bytes, 0–16"),
        ({"shape": [1, 2, 3]}, bytes(16), "16 bytes of data; shape [1, 2, 3] of FP32 takes 24"),
        ({"shape": [1, 2, 2**62]}, bytes(16), "16 bytes of data"),
        ({"data": [1, 2, 3, 4]}, bytes(16), "has both data and binary_data_size"),
        ({}, np.array([1, 2, np.nan, 4], "<f4").tobytes(), "holds NaN or infinity"),
        ({}, np.array([1, 2, -np.inf, 4], "<f4").tobytes(), "holds NaN or infinity"),
    ],
)
def test_binary_data_that_lies_about_itself_is_refused(changes: dict[str, Any], tail: bytes, says: str) -> None:
    head, _ = pixels(np.zeros((1, 2, 2)), **changes)

    with pytest.raises(BadInput, match=says.replace("[", r"\[")):
        read(head, tail, length=str(len(json.dumps(head))))


@pytest.mark.parametrize(
    ("data", "shape", "says"),
    [
        (b"\xff\xff\xff\xff", [1], "element 0 ends at byte 4,294,967,299, the data at 4"),
        (binary(b"ab", b"cd")[:-1], [2], "element 1 ends at byte 12, the data at 11"),
        (binary(b"ab", b"cd"), [1], "6 bytes follow the last of 1 elements"),
        (binary(b"ab", b"cd"), [3], "element 2 ends"),
        (b"\x01\x00\x00", [1], "3 bytes cannot hold 1 elements"),
        (b"", [1], "cannot hold 1 elements"),
    ],
)
def test_lengths_of_binary_elements_that_lie_are_refused(data: bytes, shape: list[int], says: str) -> None:
    head = {"inputs": [one("input", "BYTES", shape, parameters={"binary_data_size": len(data)})]}

    with pytest.raises(BadInput, match=says):
        read(head, data, length=str(len(json.dumps(head))))


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "9" * 5000, "999", "", "1_0"])
def test_a_length_of_the_json_part_that_is_none_is_refused(length: str) -> None:
    with pytest.raises(BadInput, match="Inference-Header-Content-Length"):
        read_inference(b"{}", Headers({HEAD_LENGTH: length}), PIXELS)


def test_inputs_with_different_numbers_of_items_are_refused() -> None:
    heads = [one("a", "INT8", [2], data=[1, 2]), one("b", "BYTES", [1, 1], data=["x"])]

    with pytest.raises(BadInput, match=r"different numbers of items: \{'a': 2, 'b': 1\}"):
        read({"inputs": heads}, signature=PAIR)


@pytest.mark.parametrize("number", [128, -129, 1.5, 2**70])
def test_a_whole_number_that_its_datatype_cannot_hold_is_refused(number: float) -> None:
    heads = [one("a", "INT8", [1], data=[number]), one("b", "BYTES", [1, 1], data=["x"])]

    with pytest.raises(BadInput, match="input 'a'"):
        read({"inputs": heads}, signature=PAIR)


@pytest.mark.parametrize(
    ("head", "data"),
    [
        (one("input", "BYTES", [100]), b'"a",' * 1_000_000 + b'"a"'),
        (one("pixels", "FP32", [100, 2, 1]), b"0," * 1_000_000 + b"0"),
        (one("pixels", "FP32", [100, 2, 25_000]), b"0," * 4_999_999 + b"0"),
        (one("pixels", "FP32", [128, 2, 2**50]), b"0"),
    ],
    ids=["texts", "numbers", "numbers that fit", "a shape of petabytes"],
)
def test_memory_for_data_is_taken_only_after_its_size_was_judged(head: dict[str, Any], data: bytes) -> None:
    raw = json.dumps({"inputs": [head | {"data": "here"}]}).encode().replace(b'"here"', b"[" + data + b"]")
    tracemalloc.start()
    try:
        with pytest.raises(BadInput):
            read(raw)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 2 * len(raw) + 100_000
