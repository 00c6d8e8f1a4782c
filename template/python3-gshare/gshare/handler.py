"""The contract between a function's author and the runtime: a class with four hooks in `function/handler.py`.

class Handler(gshare.handler.Handler):
    def load(self, context): ...      # once, in the device thread: build the model
    def example(self): ...            # an item for the warm-up run
    def decode(self, request): ...    # per request, in its own thread: bytes -> item
    def forward(self, items): ...     # in the device thread: many items -> as many outputs
    def encode(self, output, request): ...  # per request, in its own thread: output -> reply
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from numpy.typing import NDArray

from gshare.context import Context
from gshare.errors import BadInput
from gshare.request import Request
from gshare.tensors import Signature

Item = TypeVar("Item")
Output = TypeVar("Output")


class Handler(ABC, Generic[Item, Output]):
    """Base of a model function. One object serves the whole life of a replica."""

    @abstractmethod
    def load(self, context: Context) -> None:
        """Build the model and put its weights on `context.device`; mostly one call of `context.build`.

        Whatever it raises becomes the reason for which the replica is not ready.
        """

    @abstractmethod
    def decode(self, request: Request) -> Item:
        """One item for the model. Runs in the request's thread, beside others.

        Raises:
            gshare.errors.BadInput: the request cannot be used (400; TooLarge 413, UnsupportedMedia 415).
        """

    @abstractmethod
    def forward(self, items: list[Item]) -> Sequence[Output]:
        """One output for each item, in order. Runs in the device thread, alone, under `torch.inference_mode`."""

    @abstractmethod
    def example(self) -> Item:
        """An item as `decode` gives it, of typical size: the replica is ready once `forward` has run on it."""

    def encode(self, output: Output, request: Request) -> Any:  # noqa: ARG002
        """The reply: a dict or list is sent as JSON, bytes and text as they are, `Reply` sets status and headers."""
        return output

    def batch_key(self, item: Item) -> Hashable:  # noqa: ARG002
        """Items of equal key may share a forward pass; all may unless this says otherwise."""
        return None

    def signature(self) -> Signature:
        """Typed tensors that the Open Inference Protocol offers besides `input` and `reply`; asked for after `load`."""
        return Signature()

    def decode_tensors(self, tensors: Mapping[str, NDArray[Any]], request: Request) -> Item:  # noqa: ARG002
        """As `decode`, from one row of each of the signature's inputs; parameters of the request are its query.

        Datatype and shape are as declared. The arrays may be parts of a larger one and must not be written to.
        """
        raise BadInput(f"this function reads no tensors: {', '.join(tensors)}")

    def encode_tensors(self, output: Output, request: Request) -> Mapping[str, Any]:  # noqa: ARG002
        """One row of each of the signature's outputs: numbers, text, bytes, or lists and arrays of them."""
        return {}
