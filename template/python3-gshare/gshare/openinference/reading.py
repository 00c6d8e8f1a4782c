"""The body of an inference request, checked against what the function declares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from werkzeug.datastructures import Headers

from gshare.errors import BadInput
from gshare.openinference.decoding import Array, Source, decode_tensor, shown
from gshare.openinference.messages import InferHead, InputHead, Parameters, read_head
from gshare.tensors import INPUT, REPLY, Signature, TensorSpec

HEAD_LENGTH = "Inference-Header-Content-Length"
"""Header with the length of the JSON part, where binary data follows it."""
_BINARY_SIZE = "binary_data_size"
_SHARED_MEMORY = "shared_memory_region"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One output that the client gets, and in which form."""

    spec: TensorSpec
    binary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """A checked request."""

    id: str = ""
    parameters: Parameters
    """Of the request, and of its inputs over them."""
    tensors: dict[str, Array]
    """Either `input` alone or every tensor that the signature declares."""
    outputs: tuple[Wanted, ...]

    @property
    def items(self) -> int:
        return len(next(iter(self.tensors.values())))


def read_inference(body: bytes, headers: Headers, signature: Signature) -> Inference:
    """Raises: BadInput for whatever does not fit protocol, sizes or `signature`; the text names it."""
    declared = headers.get(HEAD_LENGTH)
    raw_head, tail = _split(body, declared)
    if declared is not None and not raw_head:
        return _raw_inference(tail, signature)
    head = read_head(raw_head)
    parameters = dict(head.parameters)
    for one in head.inputs:
        parameters |= one.parameters
    return Inference(
        id=head.id,
        parameters=parameters,
        tensors=_tensors(head.inputs, tail, signature),
        outputs=_outputs(head, signature),
    )


def _split(body: bytes, declared: str | None) -> tuple[memoryview, memoryview]:
    whole = memoryview(body)
    if declared is None:
        return whole, whole[:0]
    if not (declared.isascii() and declared.isdigit()) or len(declared) > 20 or int(declared) > len(body):
        raise BadInput(f"{HEAD_LENGTH}: {shown(declared)}; a number of bytes, 0–{len(body)}, the body's own length")
    length = int(declared)
    return whole[:length], whole[length:]


def _raw_inference(data: memoryview, signature: Signature) -> Inference:
    """The protocol's raw form: a JSON part of no length, and the whole body is the one item of `input`."""
    head = InputHead(name=INPUT.name, shape=(1,), datatype=INPUT.datatype)
    element = len(data).to_bytes(4, "little") + bytes(data)
    tensors = {INPUT.name: decode_tensor(Source(head, memoryview(element)), INPUT)}
    outputs = tuple(Wanted(spec, binary=True) for spec in offered(signature))
    return Inference(parameters={}, tensors=tensors, outputs=outputs)


def offered(signature: Signature) -> tuple[TensorSpec, ...]:
    """All outputs that a function has."""
    return (*signature.outputs, REPLY)


def _tensors(heads: Sequence[InputHead], tail: memoryview, signature: Signature) -> dict[str, Array]:
    specs = _specs([head.name for head in heads], signature)
    tensors = {
        source.head.name: decode_tensor(source, spec) for source, spec in zip(_sources(heads, tail), specs, strict=True)
    }
    counts = {name: len(array) for name, array in tensors.items()}
    if len(set(counts.values())) > 1:
        raise BadInput(f"the inputs have different numbers of items: {counts}")
    return tensors


def _specs(names: Sequence[str], signature: Signature) -> list[TensorSpec]:
    known = {spec.name: spec for spec in (INPUT, *signature.inputs)}
    own = [spec.name for spec in signature.inputs]
    if list(names) != [INPUT.name] and sorted(names) != sorted(own):
        forms = " or ".join([INPUT.name, *([" + ".join(own)] if own else [])])
        raise BadInput(f"inputs {', '.join(map(shown, names[:8]))}: this function takes {forms}")
    return [known[name] for name in names]


def _sources(heads: Sequence[InputHead], tail: memoryview) -> list[Source]:
    """Each input's own piece of the binary part, which they must fill exactly."""
    sources, place = [], 0
    for head in heads:
        size = _binary_size(head, len(tail))
        sources.append(Source(head, None if size is None else tail[place : place + size]))
        place += size or 0
    if place != len(tail):
        raise BadInput(f"the inputs' {_BINARY_SIZE} add up to {place:,} bytes; {len(tail):,} follow the JSON part")
    return sources


def _binary_size(head: InputHead, present: int) -> int | None:
    if _SHARED_MEMORY in head.parameters:
        raise BadInput(f"input {head.name!r}: {_SHARED_MEMORY} is not supported; send the data")
    size = head.parameters.get(_BINARY_SIZE)
    if size is None:
        return None
    if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= present:
        allowed = f"a number of bytes, 0–{present}, which follow the JSON part"
        raise BadInput(f"input {head.name!r}: {_BINARY_SIZE} is {shown(size)}; {allowed}")
    if head.data:
        raise BadInput(f"input {head.name!r}: has both data and {_BINARY_SIZE}; send one")
    return size


def _outputs(head: InferHead, signature: Signature) -> tuple[Wanted, ...]:
    binary = _flag(head.parameters, "binary_data_output", default=False)
    known = {spec.name: spec for spec in offered(signature)}
    if not head.outputs:
        return tuple(Wanted(spec, binary) for spec in known.values())
    wanted: dict[str, Wanted] = {}
    for one in head.outputs:
        if one.name not in known or one.name in wanted:
            reason = "is asked for twice" if one.name in wanted else f"there are {', '.join(known)}"
            raise BadInput(f"output {shown(one.name)}: {reason}")
        if _SHARED_MEMORY in one.parameters or "classification" in one.parameters:
            raise BadInput(f"output {one.name!r}: of the parameters only binary_data is supported")
        wanted[one.name] = Wanted(known[one.name], _flag(one.parameters, "binary_data", default=binary))
    return tuple(wanted.values())


def _flag(parameters: Parameters, name: str, *, default: bool) -> bool:
    value = parameters.get(name, default)
    if not isinstance(value, bool):
        raise BadInput(f"parameter {name} is {shown(value)}; true or false")
    return value
