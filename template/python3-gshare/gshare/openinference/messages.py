"""The protocol's JSON objects. Keys it does not name are skipped, as other servers do."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from gshare.errors import BadInput

Parameter = bool | int | float | str | None
Parameters = dict[str, Parameter]

Dimension = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

MAX_DIMENSIONS = 8
MAX_TENSORS = 64


class InputHead(msgspec.Struct, frozen=True, kw_only=True):
    """One input of a request; its data stands here, or behind the JSON part."""

    name: str
    shape: Annotated[tuple[Dimension, ...], msgspec.Meta(max_length=MAX_DIMENSIONS)]
    datatype: str
    parameters: Parameters = {}
    data: msgspec.Raw = msgspec.Raw()
    """Not decoded yet; empty where there is none."""


class OutputHead(msgspec.Struct, frozen=True, kw_only=True):
    """One output that the client wants."""

    name: str
    parameters: Parameters = {}


class InferHead(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON part of an inference request."""

    inputs: Annotated[tuple[InputHead, ...], msgspec.Meta(min_length=1, max_length=MAX_TENSORS)]
    outputs: Annotated[tuple[OutputHead, ...], msgspec.Meta(max_length=MAX_TENSORS)] = ()
    id: str = ""
    parameters: Parameters = {}


class OutputTensor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One output of a response."""

    name: str
    datatype: str
    shape: list[int]
    parameters: Parameters = {}
    data: list[Any] | None = None


class InferReply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The JSON part of an inference response."""

    model_name: str
    model_version: str
    outputs: list[OutputTensor]
    id: str = ""
    parameters: Parameters = {}


class TensorMetadata(msgspec.Struct, frozen=True):
    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ServerMetadata(msgspec.Struct, frozen=True):
    name: str
    version: str
    extensions: list[str]


def read_head(raw: bytes | memoryview) -> InferHead:
    """Raises: BadInput: not JSON, nested too deep, numbers that are too large, or not of the protocol's shape."""
    try:
        return msgspec.json.decode(raw, type=InferHead)
    except msgspec.ValidationError as error:
        raise BadInput(f"the request is not one of the protocol: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"the request is not JSON: {error}") from error
