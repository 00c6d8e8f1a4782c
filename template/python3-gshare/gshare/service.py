"""The two kinds of function behind one door: `respond` turns a request into a response."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from werkzeug.wrappers import Response

from gshare.batching import Batcher
from gshare.context import Context
from gshare.entry import Handle, explain
from gshare.errors import BadInput, FunctionError, GshareError, ModelFault, UnsupportedMedia
from gshare.handler import Handler
from gshare.plain import Event, event_context
from gshare.reply import model_response, openfaas_response
from gshare.request import Request
from gshare.wire import LiveConfig

WEIGHTS_HEADER = "X-Gshare-Weights"


class Service(Protocol):
    """A loaded function."""

    def respond(self, request: Request) -> Response:
        """Raises: GshareError, with the status to answer."""

    def configure(self, live: LiveConfig) -> None:
        """New live settings."""

    def serve(self) -> None:
        """Do the device's work in this thread until `close`; returns at once where there is none."""

    def close(self) -> None:
        """Finish what was taken, take nothing new."""


class PlainService:
    """`handle(event, context)`: runs in the request's own thread, several at once, as in OpenFaaS's template."""

    def __init__(self, handle: Handle, folder: Path) -> None:
        self._handle = handle
        self._context = event_context()
        self._folder = folder

    def respond(self, request: Request) -> Response:
        try:
            value = self._handle(Event(request), self._context)
        except GshareError:
            raise
        except Exception as error:  # edge: the author's code; its caller learns the kind and the line, not the trace
            raise ModelFault(f"handle() raised {explain(error, self._folder)}") from error
        return openfaas_response(value)

    def configure(self, live: LiveConfig) -> None:
        """Nothing of a plain function changes live."""

    def serve(self) -> None:
        """It has no device thread."""

    def close(self) -> None:
        """Its requests end by themselves."""


class ModelService:
    """A handler class: decode and encode in the request's thread, forward in the device thread, in batches."""

    def __init__(self, handler: Handler[Any, Any], context: Context, *, batcher: Batcher, folder: Path) -> None:
        self._handler = handler
        self._context = context
        self._batcher = batcher
        self._folder = folder

    @classmethod
    def load(
        cls,
        kind: type[Handler[Any, Any]],
        context: Context,
        *,
        live: LiveConfig,
        folder: Path,
        on_batch: Callable[[int], None],
    ) -> ModelService:
        """Make the handler and let it load. Runs in the device thread.

        Raises:
            GshareError: its own faults as they are; FunctionError, with the line, for anything else it raises.
        """
        try:
            handler = kind()
            handler.load(context)
        except GshareError:
            raise
        except Exception as error:  # edge: the author's code; whatever it raises is the reason for not being ready
            raise FunctionError(f"load() raised {explain(error, folder)}") from error
        batcher = Batcher(
            _Forward(handler),
            max_batch=live.max_batch,
            max_delay_s=live.max_batch_delay_ms / 1000,
            on_batch=on_batch,
        )
        return cls(handler, context, batcher=batcher, folder=folder)

    def warm_up(self) -> float:
        """Run one example through the model; milliseconds it took. Raises: FunctionError."""
        started_s = time.monotonic()
        try:
            outputs = _Forward(self._handler)([self._handler.example()])
            self._context.device.synchronize()
        except Exception as error:  # edge: the author's code, as in load
            raise FunctionError(f"the warm-up run failed: {explain(error, self._folder)}") from error
        if len(outputs) != 1:
            raise FunctionError(f"the warm-up run: forward() returned {len(outputs)} outputs for 1 item")
        return (time.monotonic() - started_s) * 1000

    def respond(self, request: Request) -> Response:
        _refuse_unreadable(request)
        item = self._decode(request)
        output = self._batcher.run(item, self._handler.batch_key(item))
        response = self._encode(output, request)
        if self._context.weights.used:
            response.headers.setdefault(WEIGHTS_HEADER, self._context.weights.text)
        return response

    def configure(self, live: LiveConfig) -> None:
        self._batcher.configure(max_batch=live.max_batch, max_delay_s=live.max_batch_delay_ms / 1000)

    def serve(self) -> None:
        self._batcher.serve()

    def close(self) -> None:
        self._batcher.close()

    def _decode(self, request: Request) -> Any:
        try:
            return self._handler.decode(request)
        except GshareError:
            raise
        except Exception as error:  # edge: a fault of the author's code, not of the request
            raise ModelFault(f"decode() raised {explain(error, self._folder)}") from error

    def _encode(self, output: Any, request: Request) -> Response:
        try:
            return model_response(self._handler.encode(output, request))
        except GshareError:
            raise
        except Exception as error:  # edge: a fault of the author's code, not of the request
            raise ModelFault(f"encode() raised {explain(error, self._folder)}") from error


class _Forward:
    """`forward` as the device thread calls it: without gradients, one output for each item."""

    def __init__(self, handler: Handler[Any, Any]) -> None:
        self._handler = handler

    def __call__(self, items: list[Any]) -> list[Any]:
        import torch

        with torch.inference_mode():
            return list(self._handler.forward(items))


def _refuse_unreadable(request: Request) -> None:
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise UnsupportedMedia(f"Content-Encoding: {encoding!r} is not read; send the body as it is (identity)")
    if not request.body:
        raise BadInput("the body is empty; send the function's input with POST")
