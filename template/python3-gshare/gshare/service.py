"""The two kinds of function behind one door: `respond` turns a request into a response.

`ModelService` besides has its three steps one by one, without any transport: decode, infer, encode.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from numpy.typing import NDArray
from werkzeug.wrappers import Response

from gshare.batching import Batcher
from gshare.context import Context
from gshare.deadline import NO_DEADLINE, Deadline
from gshare.entry import Handle, explain
from gshare.errors import BadInput, DeviceLost, FunctionError, GshareError, ModelFault, UnsupportedMedia
from gshare.faults import AUTHORS_ERRORS
from gshare.forming import Rules
from gshare.gates import OutermostGate
from gshare.handler import Handler
from gshare.pass_times import PassTimes
from gshare.passes import Passes
from gshare.plain import Event, event_context
from gshare.reply import model_response, openfaas_response
from gshare.request import Request
from gshare.tensors import check_signature
from gshare.turn import Turn
from gshare.wire import LiveConfig

WEIGHTS_HEADER = "X-Gshare-Weights"
GOAL_IN_WARM_UPS = 3
"""An objective shorter than that is not one this device can meet."""
Value = TypeVar("Value")


class Service(Protocol):
    """A loaded function."""

    def respond(self, request: Request, deadline: Deadline) -> Response:
        """Raises: GshareError, with the status to answer."""

    def configure(self, live: LiveConfig) -> None:
        """New live settings."""

    def serve(self) -> None:
        """Do the device's work, if there is any, in this thread until `close`."""

    def close(self) -> None:
        """Finish what was taken, take nothing new."""


class PlainService:
    """`handle(event, context)`: runs in the request's own thread, several at once, as in OpenFaaS's template."""

    def __init__(self, handle: Handle, folder: Path, *, gate: OutermostGate | None = None) -> None:
        """`gate`: what its torch modules have to pass; None where it has no time quota."""
        self._handle = handle
        self._context = event_context()
        self._folder = folder
        self._gate = gate
        self._closed = threading.Event()

    def respond(self, request: Request, _deadline: Deadline) -> Response:
        if self._gate is not None:
            self._gate.install()
        try:
            value = self._handle(Event(request), self._context)
        except GshareError:
            raise
        except AUTHORS_ERRORS as error:  # edge: the author's code; callers learn kind and line, not the trace
            raise ModelFault(f"handle() raised {explain(error, self._folder)}") from error
        return openfaas_response(value)

    def configure(self, live: LiveConfig) -> None:
        """Nothing of a plain function changes live."""

    def serve(self) -> None:
        """Its requests work in their own threads, with the tokens of this process, until the last has ended."""
        self._closed.wait()

    def close(self) -> None:
        self._closed.set()


class ModelService:
    """A handler class: decode and encode in the request's thread, forward in the device thread, in batches."""

    def __init__(
        self,
        handler: Handler[Any, Any],
        context: Context,
        *,
        folder: Path,
        turn: Turn,
        on_batch: Callable[[int], None],
        on_lost: Callable[[DeviceLost], None],
    ) -> None:
        self.handler = handler
        self._context = context
        self._folder = folder
        self._warmup_s = 0.0
        self._times = PassTimes()
        self._passes = Passes(handler, context.device, turn)
        self._batcher = Batcher(self._passes, times=self._times, on_batch=on_batch, on_lost=on_lost, on_idle=turn.idle)

    @classmethod
    def load(
        cls,
        kind: type[Handler[Any, Any]],
        context: Context,
        *,
        folder: Path,
        turn: Turn,
        on_batch: Callable[[int], None],
        on_lost: Callable[[DeviceLost], None],
    ) -> ModelService:
        """Make the handler and let it load. Runs in the device thread.

        Raises:
            GshareError: its own faults as they are; FunctionError, with the line, for anything else it raises.
        """
        try:
            handler = kind()
            handler.load(context)
            check_signature(handler.signature())
        except GshareError:
            raise
        except AUTHORS_ERRORS as error:  # edge: the author's code; whatever it raises is the reason for not being ready
            raise FunctionError(f"load() raised {explain(error, folder)}") from error
        return cls(handler, context, folder=folder, turn=turn, on_batch=on_batch, on_lost=on_lost)

    @property
    def weights(self) -> str:
        """The weights that answer, as they were asked for; empty if the function loaded none."""
        return self._context.weights.text if self._context.weights.used else ""

    def warm_up(self) -> float:
        """Run one example through the model; milliseconds it took. Raises: FunctionError."""
        try:
            outputs, self._warmup_s = self._passes.warm_up()
        except AUTHORS_ERRORS as error:  # edge: the author's code, as in load
            raise FunctionError(f"the warm-up run failed: {explain(error, self._folder)}") from error
        if len(outputs) != 1:
            raise FunctionError(f"the warm-up run: forward() returned {len(outputs)} outputs for 1 item")
        self._times.assume(self._warmup_s)
        return self._warmup_s * 1000

    def respond(self, request: Request, deadline: Deadline = NO_DEADLINE) -> Response:
        _refuse_unreadable(request)
        (output,) = self.infer([self.decode(request)], deadline=deadline)
        response = self._guarded("encode", lambda: model_response(self.handler.encode(output, request)))
        if self.weights:
            response.headers.setdefault(WEIGHTS_HEADER, self.weights)
        return response

    def decode(self, request: Request) -> Any:
        """The item that a request is to the model. Raises: BadInput; ModelFault for a fault of the author's code."""
        return self._guarded("decode", lambda: self.handler.decode(request))

    def decode_tensors(self, tensors: Mapping[str, NDArray[Any]], request: Request) -> Any:
        """As `decode`, from a row of each tensor that the handler's signature declares."""
        return self._guarded("decode_tensors", lambda: self.handler.decode_tensors(tensors, request))

    def encode_tensors(self, output: Any, request: Request) -> Mapping[str, Any]:
        """As `encode`, a row of each tensor that the handler's signature declares."""
        return self._guarded("encode_tensors", lambda: self.handler.encode_tensors(output, request))

    def infer(self, items: Sequence[Any], *, deadline: Deadline = NO_DEADLINE) -> list[Any]:
        """The model's outputs for decoded items, in order, through as many passes as it takes.

        Raises: as `Batcher.infer` says.
        """
        keys = self._guarded("batch_key", lambda: [_hashable(self.handler.batch_key(item)) for item in items])
        return self._batcher.infer(items, keys, deadline=deadline)

    def encode(self, output: Any, request: Request) -> Any:
        """What the author's `encode` makes of an output. Raises: ModelFault for a fault of the author's code."""
        return self._guarded("encode", lambda: self.handler.encode(output, request))

    def configure(self, live: LiveConfig) -> None:
        self._batcher.configure(batch_rules(live, warmup_s=self._warmup_s))

    def serve(self) -> None:
        self._batcher.serve()

    def close(self) -> None:
        self._batcher.close()

    def _guarded(self, hook: str, run: Callable[[], Value]) -> Value:
        """`run`, whatever it raises named as a fault of that hook, unless the author chose the error."""
        try:
            return run()
        except GshareError:
            raise
        except AUTHORS_ERRORS as error:  # edge: a fault of the author's code, not of the request
            raise ModelFault(f"{hook}() raised {explain(error, self._folder)}") from error


def batch_rules(live: LiveConfig, *, warmup_s: float) -> Rules:
    """The batcher's rules for live settings, on a device whose warm-up pass took `warmup_s`.

    The goal is the objective, but no less than a few passes at the rate that `quota_request` guarantees: a share that
    cannot meet the objective still serves what it can. Without an objective there is none: an item waits as long as
    `max_batch_delay_ms` says, and nothing is late.
    """
    goal_s = max(live.slo_ms / 1000, GOAL_IN_WARM_UPS * warmup_s / live.quota_request) if live.slo_ms else math.inf
    return Rules(max_batch=live.max_batch, max_delay_s=live.max_batch_delay_ms / 1000, goal_s=goal_s)


def _hashable(key: Hashable) -> Hashable:
    hash(key)
    return key


def _refuse_unreadable(request: Request) -> None:
    refuse_encoded(request)
    if not request.body:
        raise BadInput("the body is empty; send the function's input with POST")


def refuse_encoded(request: Request) -> None:
    """Raises: UnsupportedMedia for a body that is compressed."""
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedMedia(f"Content-Encoding: {encoding!r} is not read; send the body as it is (identity)")
