"""The Flask app around a runtime: the function under every path, and the replica's own pages under `/_/`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import flask
import msgspec
from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing import BaseConverter
from werkzeug.wrappers import Response as AnyResponse

from gshare.condition import Phase
from gshare.config import ReplicaConfig
from gshare.edge import answered, error_response, read_request
from gshare.metrics import CONTENT_TYPE
from gshare.openinference.routes import add_protocol
from gshare.reply import JSON
from gshare.runtime import Runtime
from gshare.status import status_of

TEMPLATE = Path(__file__).parent.parent
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
EXTENSION = "gshare"
RETRY_AFTER_S = 1


class AnyPath(BaseConverter):
    """A path with whatever it holds, double and leading slashes included."""

    regex = ".*"
    part_isolating = False


def create_app(env: Mapping[str, str] | None = None, *, start: bool = True) -> Flask:
    """The app of one replica, told by its environment; `start` begins to load at once.

    Raises:
        ConfigError: an environment variable that cannot be used.
    """
    env = os.environ if env is None else env
    runtime = Runtime(ReplicaConfig.from_env(env), env, template=TEMPLATE)
    app = Flask("gshare", static_folder=None)
    app.config.update(
        MAX_CONTENT_LENGTH=runtime.config.max_body_bytes,
        MAX_FORM_MEMORY_SIZE=runtime.config.max_body_bytes,
        MAX_FORM_PARTS=1000,
    )
    app.extensions[EXTENSION] = runtime
    app.url_map.merge_slashes = False
    app.url_map.converters["any"] = AnyPath
    app.register_error_handler(HTTPException, _http_error)
    _add_own_pages(app, runtime)
    _add_function(app, runtime)
    if start:
        runtime.start()
    return app


def runtime_of(app: Flask) -> Runtime:
    """The runtime that `create_app` made."""
    runtime = app.extensions[EXTENSION]
    assert isinstance(runtime, Runtime)
    return runtime


def _add_own_pages(app: Flask, runtime: Runtime) -> None:
    def health() -> Response:
        return Response("OK", content_type="text/plain")

    def ready() -> Response:
        known = runtime.condition
        body = {"state": str(known.phase), "reason": known.reason}
        if known.phase is Phase.READY and not runtime.calls.full:
            return Response(msgspec.json.encode(body), content_type=JSON)
        code = 503
        if known.phase is Phase.READY:
            code, body = 429, body | {"reason": f"{runtime.calls.limit} calls are in work, the limit here"}
        return Response(msgspec.json.encode(body), code, {"Retry-After": str(RETRY_AFTER_S)}, content_type=JSON)

    def status() -> Response:
        return Response(msgspec.json.encode(status_of(runtime)), content_type=JSON)

    def metrics() -> Response:
        return Response(runtime.metrics.text(), content_type=CONTENT_TYPE)

    pages = {"/_/health": health, "/_/ready": ready, "/_/status": status, "/metrics": metrics}

    def page() -> Response:
        if flask.request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed(["GET", "HEAD"], "the runtime's own pages are read with GET")
        return pages[flask.request.path]()

    for path in pages:
        app.add_url_rule(path, endpoint="page", view_func=page, methods=METHODS, provide_automatic_options=False)


def _add_function(app: Flask, runtime: Runtime) -> None:
    def function(path: str = "") -> AnyResponse:  # noqa: ARG001
        return answered(runtime, lambda: _respond(runtime), refuse=error_response)

    for rule in ("/", "/<any:path>"):
        app.add_url_rule(
            rule, endpoint="function", view_func=function, methods=METHODS, provide_automatic_options=False
        )
    add_protocol(app, runtime, function=function, methods=METHODS)


def _respond(runtime: Runtime) -> AnyResponse:
    with runtime.admitted(flask.request.headers) as call:
        request = read_request(runtime.config.max_body_bytes)
        return call.run(lambda: call.service.respond(request, call.deadline))


def _http_error(error: HTTPException) -> AnyResponse:
    """What Flask itself refuses (a method that no page has), in the form of all other errors."""
    code = error.name.lower().replace(" ", "_")
    body = {"error": {"code": code, "message": error.description, "retryable": False}}
    return Response(msgspec.json.encode(body), error.code, error.get_headers(), content_type=JSON)
