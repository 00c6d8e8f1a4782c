"""What a function gave for each item, as tensors of a response: JSON data or the binary form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gshare.errors import BadInput, ModelFault, NonFiniteOutput
from gshare.openinference.decoding import LENGTH_BYTES, NUMPY, Array
from gshare.openinference.messages import OutputTensor
from gshare.tensors import ANY, REPLY, Datatype, TensorSpec


@dataclass(frozen=True, slots=True)
class Encoded:
    """One output, and its bytes behind the JSON part (empty for one that stands in it)."""

    tensor: OutputTensor
    binary: bytes


def stack_rows(rows: Sequence[Mapping[str, Any]], spec: TensorSpec) -> Array:
    """One tensor of all items' rows.

    Raises:
        BadInput: the items' rows differ in shape, so that no one tensor holds them.
        ModelFault: a row is missing, or is not of the datatype and shape that the function declared.
        NonFiniteOutput: NaN or infinity.
    """
    arrays = [_row(row, spec) for row in rows]
    for index, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise BadInput(
                f"output {spec.name!r}: item {index} has shape {list(array.shape)}, item 0 {list(arrays[0].shape)}; "
                f"one tensor cannot hold both: ask for them in separate requests, or for the output {REPLY.name!r}"
            )
    stacked: Array = np.stack(arrays)
    if spec.datatype.is_float and not np.isfinite(stacked).all():
        raise NonFiniteOutput(f"the function's output {spec.name!r} has NaN or infinity")
    return stacked


def encode_tensor(array: Array, spec: TensorSpec, *, binary: bool) -> Encoded:
    """Raises: BadInput: bytes that are no UTF-8 text, asked for as JSON."""
    shape = list(array.shape)
    if binary or spec.datatype is Datatype.BF16:
        data = _to_bytes(array, spec)
        size = {"binary_data_size": len(data)}
        head = OutputTensor(name=spec.name, datatype=spec.datatype, shape=shape, parameters={**size})
        return Encoded(head, data)
    values = _texts(array, spec) if spec.datatype is Datatype.BYTES else array.ravel().tolist()
    return Encoded(OutputTensor(name=spec.name, datatype=spec.datatype, shape=shape, data=values), b"")


def _row(row: Mapping[str, Any], spec: TensorSpec) -> Array:
    if spec.name not in row:
        given = ", ".join(name for name in row if name != REPLY.name) or "nothing"
        raise ModelFault(f"encode_tensors() gave no {spec.name!r}; it gave {given}")
    try:
        array = _objects(row[spec.name]) if spec.datatype is Datatype.BYTES else _numbers(row[spec.name], spec)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelFault(f"output {spec.name!r} is declared {spec.datatype}: {error}") from error
    fits = len(array.shape) == len(spec.shape) and all(
        b in (ANY, a) for a, b in zip(array.shape, spec.shape, strict=True)
    )
    if not fits:
        raise ModelFault(f"output {spec.name!r} has shape {list(array.shape)}; declared is {list(spec.shape)}")
    return array


def _numbers(value: Any, spec: TensorSpec) -> Array:
    return np.asarray(value, np.float32 if spec.datatype is Datatype.BF16 else NUMPY[spec.datatype])


def _objects(value: Any) -> Array:
    """Text or bytes, alone or in nested lists, as an array of bytes."""
    array: Array = np.array(value, object)
    result: Array = np.empty(array.size, object)
    result[:] = [_bytes(item) for item in array.flat]
    return result.reshape(array.shape)


def _bytes(item: object) -> bytes:
    if isinstance(item, str):
        return item.encode("utf-8", "surrogatepass")
    if isinstance(item, bytes):
        return item
    raise TypeError(f"it holds {type(item).__name__}; give text or bytes")


def _to_bytes(array: Array, spec: TensorSpec) -> bytes:
    if spec.datatype is Datatype.BYTES:
        return b"".join(len(item).to_bytes(LENGTH_BYTES, "little") + item for item in array.flat)
    if spec.datatype is Datatype.BF16:  # the upper half of a float32, rounded to the nearest even
        bits = array.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()
    return array.tobytes()


def _texts(array: Array, spec: TensorSpec) -> list[str]:
    try:
        return [item.decode() for item in array.flat]
    except UnicodeDecodeError as error:
        raise BadInput(
            f"output {spec.name!r} is no UTF-8 text, which JSON could carry: ask for it with binary_data true"
        ) from error
