"""Tensor data of an untrusted client to numpy arrays; sizes are checked against the shape before memory is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gshare.errors import BadInput
from gshare.openinference.messages import InputHead
from gshare.tensors import ANY, INPUT, Datatype, TensorSpec

MAX_ITEMS = 128
"""Most items in one request; more are better sent as several, which share passes all the same."""
MAX_STRINGS = 10_000
"""Most elements of a BYTES tensor."""
MAX_JSON_NUMBERS = 4_000_000
"""Most numbers of a tensor as JSON: they take 32 bytes each while they are read, 128 MB in all."""
LENGTH_BYTES = 4
"""Before each element of a binary BYTES tensor."""
_SHOWN = 80
NUMPY: dict[Datatype, np.dtype[Any]] = {
    Datatype.BOOL: np.dtype("?"),
    Datatype.UINT8: np.dtype("u1"),
    Datatype.UINT16: np.dtype("<u2"),
    Datatype.UINT32: np.dtype("<u4"),
    Datatype.UINT64: np.dtype("<u8"),
    Datatype.INT8: np.dtype("i1"),
    Datatype.INT16: np.dtype("<i2"),
    Datatype.INT32: np.dtype("<i4"),
    Datatype.INT64: np.dtype("<i8"),
    Datatype.FP16: np.dtype("<f2"),
    Datatype.FP32: np.dtype("<f4"),
    Datatype.FP64: np.dtype("<f8"),
    Datatype.BF16: np.dtype("<u2"),
    Datatype.BYTES: np.dtype(object),
}

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Source:
    """Where an input's data lies: `binary` behind the JSON part, or in the head itself."""

    head: InputHead
    binary: memoryview | None


def shown(value: object) -> str:
    """What a client sent, in an error's text: never longer than a line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def decode_tensor(source: Source, spec: TensorSpec) -> Array:
    """The tensor, its first dimension the items; BYTES as an array of objects, BF16 as float32.

    Raises:
        BadInput: another datatype or shape than `spec`, data that does not fill the shape, or is not of the datatype.
    """
    head = source.head
    if head.datatype != spec.datatype:
        raise BadInput(f"input {head.name!r}: datatype {shown(head.datatype)}; it takes {spec.datatype}")
    _check_shape(head, spec)
    array = _from_binary(source.binary, head, spec) if source.binary is not None else _from_json(head, spec)
    if spec.finite and spec.datatype.is_float and not np.isfinite(array).all():
        raise BadInput(f"input {head.name!r}: holds NaN or infinity; finite numbers only")
    return array


def _check_shape(head: InputHead, spec: TensorSpec) -> None:
    wanted = (ANY, *spec.shape)
    shape = head.shape
    if spec is INPUT and shape[1:] == (1,):  # a batch of one-element rows, as clients of other servers send it
        shape = shape[:1]
    fits = len(shape) == len(wanted) and all(b in (ANY, a) for a, b in zip(shape, wanted, strict=True))
    if not fits or min(shape) < 1:
        raise BadInput(f"input {head.name!r}: shape {list(head.shape)}; it takes {list(wanted)}, {ANY} being 1 or more")
    if shape[0] > MAX_ITEMS:
        raise BadInput(f"input {head.name!r}: {shape[0]:,} items in one request; at most {MAX_ITEMS}: send several")
    if spec.datatype is Datatype.BYTES and math.prod(shape) > MAX_STRINGS:
        raise BadInput(f"input {head.name!r}: {math.prod(shape):,} elements of BYTES; at most {MAX_STRINGS:,}")


def _from_binary(data: memoryview, head: InputHead, spec: TensorSpec) -> Array:
    elements = math.prod(head.shape)
    if spec.datatype is Datatype.BYTES:
        return _objects(_split_elements(data, head.name, elements), head)
    kind = NUMPY[spec.datatype]
    if len(data) != elements * kind.itemsize:
        raise BadInput(
            f"input {head.name!r}: {len(data):,} bytes of data; shape {list(head.shape)} of {spec.datatype} takes "
            f"{elements * kind.itemsize:,}"
        )
    array = np.frombuffer(data, kind).reshape(head.shape)
    return _bfloat_to_float(array) if spec.datatype is Datatype.BF16 else array


def _bfloat_to_float(array: Array) -> Array:
    """A bfloat16 is the upper half of a float32."""
    widened: Array = (array.astype(np.uint32) << 16).view(np.float32)
    return widened


def _split_elements(data: memoryview, name: str, elements: int) -> list[bytes]:
    """Elements of a binary BYTES tensor: each behind its length, which may lie."""
    if elements * LENGTH_BYTES > len(data):
        raise BadInput(f"input {name!r}: {len(data):,} bytes cannot hold {elements:,} elements with their lengths")
    found: list[bytes] = []
    place = 0
    for index in range(elements):
        start = place + LENGTH_BYTES
        place = start + int.from_bytes(data[place:start], "little")
        if start > len(data) or place > len(data):
            raise BadInput(f"input {name!r}: element {index} ends at byte {place:,}, the data at {len(data):,}")
        found.append(bytes(data[start:place]))
    if place != len(data):
        raise BadInput(f"input {name!r}: {len(data) - place:,} bytes follow the last of {elements:,} elements")
    return found


def _from_json(head: InputHead, spec: TensorSpec) -> Array:
    if not head.data:
        raise BadInput(f"input {head.name!r}: has neither data nor a binary_data_size")
    if spec.datatype is Datatype.BF16:
        raise BadInput(f"input {head.name!r}: BF16 has no JSON form; send it as binary data")
    if spec.datatype is Datatype.BYTES:
        return _objects([text.encode("utf-8", "surrogatepass") for text in _texts(head)], head)
    return _numbers(head, spec)


def _texts(head: InputHead) -> tuple[str, ...]:
    """Strings of flat data, or of one list for each item; a type of fixed length stops reading where too many come."""
    try:
        return msgspec.json.decode(head.data, type=_strings(math.prod(head.shape)))  # type: ignore[no-any-return]
    except msgspec.MsgspecError as error:
        if len(head.shape) == 2:
            rows: tuple[tuple[str, ...], ...] = _decode(head, _lists(head.shape[0], _strings(head.shape[1])))
            return tuple(text for row in rows for text in row)
        raise BadInput(f"input {head.name!r}: data does not fit its shape {list(head.shape)}: {error}") from error


def _strings(count: int) -> Any:
    return _lists(count, str)


def _list(of: Any) -> Any:
    return list.__class_getitem__(of)


def _lists(count: int, of: Any) -> Any:
    """The type of exactly so many."""
    return tuple.__class_getitem__((of,) * count)


def _numbers(head: InputHead, spec: TensorSpec) -> Array:
    """Flat or nested numbers; between as many numbers as the shape holds stand as many commas, less one."""
    raw, elements = bytes(head.data), math.prod(head.shape)
    present = raw.count(b",") + 1
    if present != elements:
        raise BadInput(f"input {head.name!r}: {present:,} numbers; shape {list(head.shape)} takes {elements:,}")
    if elements > MAX_JSON_NUMBERS:
        raise BadInput(
            f"input {head.name!r}: {elements:,} numbers; at most {MAX_JSON_NUMBERS:,} as JSON: send binary data"
        )
    is_nested = raw.lstrip()[1:].lstrip()[:1] == b"["
    wanted = _list(_number_type(spec.datatype))
    for _ in head.shape[1:] if is_nested else ():
        wanted = _list(wanted)
    values = _decode(head, wanted)
    try:
        with np.errstate(over="ignore"):  # what does not fit becomes infinite, which `finite` judges
            array: Array = np.array(values, NUMPY[spec.datatype])
    except (OverflowError, ValueError) as error:
        raise BadInput(f"input {head.name!r}: data is not {spec.datatype} of {list(head.shape)}: {error}") from error
    if is_nested and array.shape != head.shape:
        raise BadInput(f"input {head.name!r}: data has shape {list(array.shape)}; {list(head.shape)} is declared")
    return array.reshape(head.shape)


def _number_type(datatype: Datatype) -> Any:
    """What JSON has to hold; whole numbers of 64 bits are judged when numpy takes them."""
    if datatype is Datatype.BOOL:
        return bool
    if datatype.is_float:
        return float
    limits = np.iinfo(NUMPY[datatype])
    if limits.bits < 64:
        return Annotated[int, msgspec.Meta(ge=int(limits.min), le=int(limits.max))]
    return Annotated[int, msgspec.Meta(ge=0)] if limits.min == 0 else int


def _decode(head: InputHead, kind: Any) -> Any:
    try:
        return msgspec.json.decode(head.data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise BadInput(f"input {head.name!r}: data does not fit: {error}") from error


def _objects(values: list[bytes], head: InputHead) -> Array:
    array: Array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(head.shape)
