"""The two kinds of function as the protocol sees them: items in, an answer for each out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from werkzeug.wrappers import Response

from gshare.deadline import Deadline
from gshare.errors import BadInput, GshareError
from gshare.openinference.decoding import Array
from gshare.reply import model_response
from gshare.request import Request
from gshare.service import ModelService, PlainService, Service
from gshare.tensors import Signature

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Item:
    """Its content is the request's body, or a row of each tensor of the function's signature."""

    index: int
    request: Request
    tensors: Mapping[str, Array] | None = None


class Answer(Protocol):
    """What the function made of an item; encoded when it is asked for."""

    def response(self) -> Response:
        """As `POST /` answers. Raises: GshareError."""

    def tensors(self) -> Mapping[str, Any]:
        """One row of each output of the signature. Raises: GshareError."""


class Core(Protocol):
    """A loaded function."""

    @property
    def signature(self) -> Signature:
        """Tensors besides `input` and `reply`."""

    @property
    def weights(self) -> str:
        """What answers, as it was asked for; empty if the function loaded none."""

    def infer(self, items: Sequence[Item]) -> list[Answer]:
        """An answer for each item, in order; they share passes with those of other requests.

        Raises:
            GshareError: the function takes none now, or refuses one of these; the text says which.
        """


class Refused(GshareError):
    """A function answered an item with an error of its own."""

    code = "refused"

    def __init__(self, text: str, *, status: int) -> None:
        super().__init__(text)
        self.status = status


def core_of(service: Service, deadline: Deadline) -> Core:
    """The service behind the protocol, for one request."""
    if isinstance(service, ModelService):
        return _ModelCore(service, deadline)
    assert isinstance(service, PlainService)
    return _PlainCore(service, deadline)


def for_item(index: int, run: Callable[[], Value]) -> Value:
    """`run`, with the item's index in the text of whatever it raises. Raises: the same kind of GshareError."""
    try:
        return run()
    except GshareError as error:
        raise _named(error, index) from error.__cause__


def _named(error: GshareError, index: int) -> GshareError:
    text = f"item {index}: {error}"
    if isinstance(error, Refused):
        return Refused(text, status=error.status)
    named = type(error)(text)
    named.retry_after_s = error.retry_after_s
    return named


@dataclass(frozen=True, slots=True)
class _ModelCore:
    service: ModelService
    deadline: Deadline

    @property
    def signature(self) -> Signature:
        return self.service.handler.signature()

    @property
    def weights(self) -> str:
        return self.service.weights

    def infer(self, items: Sequence[Item]) -> list[Answer]:
        decoded = [for_item(item.index, lambda item=item: self._decode(item)) for item in items]  # type: ignore[misc]
        try:
            outputs = self.service.infer(decoded, deadline=self.deadline)
        except GshareError as error:
            if error.item is None:
                raise
            raise _named(error, items[error.item].index) from error.__cause__
        return [_ModelAnswer(self.service, item.request, output) for item, output in zip(items, outputs, strict=True)]

    def _decode(self, item: Item) -> Any:
        if item.tensors is not None:
            return self.service.decode_tensors(item.tensors, item.request)
        if not item.request.body:
            raise BadInput("is empty; send the function's input")
        return self.service.decode(item.request)


@dataclass(frozen=True, slots=True)
class _ModelAnswer:
    service: ModelService
    request: Request
    output: Any

    def response(self) -> Response:
        return model_response(self.service.encode(self.output, self.request))

    def tensors(self) -> Mapping[str, Any]:
        return self.service.encode_tensors(self.output, self.request)


@dataclass(frozen=True, slots=True)
class _PlainCore:
    """`handle()` knows one event at a time and no tensors."""

    service: PlainService
    deadline: Deadline
    signature: Signature = Signature()
    weights: str = ""

    def infer(self, items: Sequence[Item]) -> list[Answer]:
        return [
            _PlainAnswer(for_item(item.index, lambda item=item: self.service.respond(item.request, self.deadline)))  # type: ignore[misc]
            for item in items
        ]


@dataclass(frozen=True, slots=True)
class _PlainAnswer:
    answered: Response

    def response(self) -> Response:
        return self.answered

    def tensors(self) -> Mapping[str, Any]:
        return {}
