"""What a function says of itself: name, version, and the tensors it takes and gives."""

from __future__ import annotations

import gshare
from gshare.openinference.messages import ModelMetadata, ServerMetadata, TensorMetadata
from gshare.openinference.reading import offered
from gshare.tensors import ANY, INPUT, Signature, TensorSpec

VERSION = "1"
"""A function has one version at a time; which weights it runs on, its reply says."""
SERVER = "fast-gshare"
BINARY_EXTENSION = "binary_tensor_data"
PLATFORM = "fast-gshare_python"
_UNNAMED = "function"


def model_name(function: str) -> str:
    """The protocol's model name: the function's, without its namespace."""
    return function.partition(".")[0] or _UNNAMED


def server_metadata() -> ServerMetadata:
    return ServerMetadata(SERVER, gshare.__version__, [BINARY_EXTENSION])


def model_metadata(name: str, signature: Signature) -> ModelMetadata:
    """Of the inputs a request sends `input`, or all the others."""
    return ModelMetadata(
        name=name,
        versions=[VERSION],
        platform=PLATFORM,
        inputs=[_tensor(spec) for spec in (INPUT, *signature.inputs)],
        outputs=[_tensor(spec) for spec in offered(signature)],
    )


def _tensor(spec: TensorSpec) -> TensorMetadata:
    return TensorMetadata(spec.name, spec.datatype, [ANY, *spec.shape])
