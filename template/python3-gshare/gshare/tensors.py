"""Typed tensors that a function takes and gives under the Open Inference Protocol, as its author declares them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gshare.errors import FunctionError


class Datatype(StrEnum):
    """The protocol's names; numbers travel in little-endian order."""

    BOOL = "BOOL"
    UINT8 = "UINT8"
    UINT16 = "UINT16"
    UINT32 = "UINT32"
    UINT64 = "UINT64"
    INT8 = "INT8"
    INT16 = "INT16"
    INT32 = "INT32"
    INT64 = "INT64"
    FP16 = "FP16"
    FP32 = "FP32"
    FP64 = "FP64"
    BF16 = "BF16"
    """Two bytes, binary only; numpy has no such type, so a function sees FP32."""
    BYTES = "BYTES"
    """Any bytes; text is UTF-8."""

    @property
    def is_float(self) -> bool:
        return self in (Datatype.FP16, Datatype.FP32, Datatype.FP64, Datatype.BF16)


ANY = -1
"""A dimension that each request chooses."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor. `shape` is that of a single item: on the wire the number of items stands before it."""

    name: str
    datatype: Datatype
    shape: tuple[int, ...] = ()
    finite: bool = True
    """Whether NaN and infinity are refused in an input, with 400."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives besides `input` and `reply`, which every function has.

    A request sends either `input` or all of `inputs`.
    """

    inputs: tuple[TensorSpec, ...] = ()
    outputs: tuple[TensorSpec, ...] = ()


INPUT = TensorSpec("input", Datatype.BYTES)
"""Each item is what the body of `POST /` would be."""
REPLY = TensorSpec("reply", Datatype.BYTES)
"""Each item is what the body of `POST /`'s answer would be."""


def check_signature(signature: Signature) -> None:
    """Raises: FunctionError for a name that stands twice or belongs to `input` or `reply`, or a shape that is none."""
    for kind, specs, reserved in (("input", signature.inputs, INPUT), ("output", signature.outputs, REPLY)):
        names = [reserved.name, *(spec.name for spec in specs)]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise FunctionError(
                f"signature(): {kind} {', '.join(twice)}: give each a name of its own; {names[0]} is taken"
            )
        for spec in specs:
            if any(size != ANY and size < 1 for size in spec.shape):
                raise FunctionError(f"signature(): {kind} {spec.name}: shape {spec.shape}; sizes of 1 or more, or ANY")
