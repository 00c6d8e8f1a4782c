"""The protocol's pages on a replica's app, and its own form of errors."""

from __future__ import annotations

from collections.abc import Callable

import flask
import msgspec
from flask import Flask
from werkzeug.wrappers import Response

from gshare.condition import Phase
from gshare.deadline import NO_DEADLINE
from gshare.edge import answered, message_of, read_request, retry_headers
from gshare.errors import GshareError, NotReady
from gshare.openinference.core import core_of
from gshare.openinference.inference import infer
from gshare.openinference.metadata import VERSION, model_metadata, model_name, server_metadata
from gshare.openinference.paths import PREFIX, Page, Place, find_place
from gshare.reply import JSON
from gshare.runtime import Runtime
from gshare.service import ModelService


class _NoPage(GshareError):
    code = "not_found"
    status = 404


class _WrongMethod(GshareError):
    code = "method_not_allowed"
    status = 405


def add_protocol(app: Flask, runtime: Runtime, *, function: Callable[[], Response], methods: tuple[str, ...]) -> None:
    """Serve the protocol below /v2; a `handle()` gets the paths there that are none of the protocol's."""
    model = model_name(runtime.config.function)

    def page(path: str = "") -> Response:  # noqa: ARG001
        place = find_place(flask.request.path)
        if place is None and not _is_model(runtime):
            return function()
        try:
            return _page(runtime, _checked(place, model), model)
        except GshareError as error:
            return refuse(error)

    for rule in (PREFIX, f"{PREFIX}/<any:path>"):
        app.add_url_rule(rule, "openinference", page, methods=methods, provide_automatic_options=False)


def refuse(fault: GshareError) -> Response:
    """The protocol's error: {"error": text}."""
    return _json({"error": message_of(fault)}, fault.status, headers=retry_headers(fault))


def _is_model(runtime: Runtime) -> bool:
    try:
        return isinstance(runtime.loaded(), ModelService)
    except NotReady:
        return False


def _checked(place: Place | None, model: str) -> Place:
    """Raises: GshareError for a path, model or version that is not there, or another method."""
    if place is None:
        raise _NoPage(f"{flask.request.path[:200]!r}: no page of the protocol; see {PREFIX}/models/{model}")
    if place.model not in ("", model):
        raise _NoPage(f"no model {place.model[:80]!r} here; this function is {model!r}")
    if place.version not in ("", VERSION):
        raise _NoPage(f"{model}: no version {place.version[:80]!r}; there is {VERSION!r}")
    method = flask.request.method
    if method != place.page.method and (method, place.page.method) != ("HEAD", "GET"):
        raise _WrongMethod(f"{method}: this page takes {place.page.method}")
    return place


def _page(runtime: Runtime, place: Place, model: str) -> Response:
    """Raises: NotReady where the function has to be asked."""
    is_ready = runtime.condition.phase is Phase.READY
    match place.page:
        case Page.INFER:
            return answered(runtime, lambda: _infer(runtime, model), refuse=refuse)
        case Page.MODEL:
            return _json(model_metadata(model, core_of(runtime.loaded(), NO_DEADLINE).signature))
        case Page.SERVER:
            return _json(server_metadata())
        case Page.LIVE:
            return _json({"live": True})
        case Page.READY:
            return _json({"ready": is_ready}, 200 if is_ready else 503)
        case Page.MODEL_READY:
            return _json({"name": model, "ready": is_ready}, 200 if is_ready else 503)


def _infer(runtime: Runtime, model: str) -> Response:
    with runtime.admitted(flask.request.headers) as call:
        request = read_request(runtime.config.max_body_bytes)
        return call.run(lambda: infer(core_of(call.service, call.deadline), request, model=model))


def _json(value: object, status: int = 200, *, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, content_type=JSON)
