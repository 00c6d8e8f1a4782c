"""The Flask app around a runtime: the function under every path, and the replica's own pages under `/_/`."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote

import flask
import msgspec
from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed, RequestEntityTooLarge
from werkzeug.routing import BaseConverter
from werkzeug.wrappers import Response as AnyResponse

from gshare.config import ReplicaConfig
from gshare.errors import BadInput, GshareError, ModelFault, NotReady, TooLarge
from gshare.metrics import CONTENT_TYPE
from gshare.reply import JSON
from gshare.request import Request, Upload
from gshare.runtime import Phase, Runtime
from gshare.status import status_of

log = logging.getLogger(__name__)

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
        if known.phase is Phase.READY:
            return Response(msgspec.json.encode({"state": known.phase, "reason": ""}), content_type=JSON)
        body = msgspec.json.encode({"state": known.phase, "reason": known.reason})
        return Response(body, 503, {"Retry-After": str(RETRY_AFTER_S)}, content_type=JSON)

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
        started_s = time.monotonic()
        with runtime.metrics.in_flight:
            response = _answer(runtime)
        runtime.metrics.answered(response.status_code, time.monotonic() - started_s)
        return response

    for rule in ("/", "/<any:path>"):
        app.add_url_rule(
            rule, endpoint="function", view_func=function, methods=METHODS, provide_automatic_options=False
        )


def _answer(runtime: Runtime) -> AnyResponse:
    """The function's response, or the error that stands for it: mapped here and nowhere else."""
    try:
        return runtime.respond(read_request(runtime.config.max_body_bytes))
    except GshareError as error:
        if isinstance(error, ModelFault):
            log.error("%s: %s", error.code, error, exc_info=error.__cause__)
        fault = error
    except Exception as error:  # edge of a request: nothing a single one does may take the worker down
        log.error("unexpected fault", exc_info=error)
        fault = ModelFault(f"the runtime failed on this request ({type(error).__name__}); its log has the trace")
    runtime.metrics.error(fault.code)
    return error_response(fault)


def read_request(max_body_bytes: int) -> Request:
    """The current Flask request as a handler gets it. Raises: TooLarge, BadInput."""
    sent = flask.request
    try:
        body = sent.get_data()
        files = {
            field: Upload(file.filename or "", file.mimetype, file.stream.read()) for field, file in sent.files.items()
        }
    except RequestEntityTooLarge as error:
        raise TooLarge(f"the body is larger than {max_body_bytes} bytes, the limit here") from error
    except HTTPException as error:
        raise BadInput(f"the request cannot be read: {error.description}") from error
    raw_path = _raw_path(str(sent.environ.get("RAW_URI", "")), sent.path)
    return Request(
        body=body,
        method=sent.method,
        path=unquote(raw_path),
        raw_path=raw_path,
        query=sent.args,
        headers=sent.headers,
        files=files,
    )


def _raw_path(uri: str, decoded: str) -> str:
    """The path as it was sent: Flask's own has its leading slashes merged and its escapes resolved."""
    path = uri.partition("?")[0]
    return path if path.startswith("/") else quote(decoded)


def _http_error(error: HTTPException) -> AnyResponse:
    """What Flask itself refuses (a method that no page has), in the form of all other errors."""
    code = error.name.lower().replace(" ", "_")
    body = {"error": {"code": code, "message": error.description, "retryable": False}}
    return Response(msgspec.json.encode(body), error.code, error.get_headers(), content_type=JSON)


def error_response(fault: GshareError) -> Response:
    """JSON {"error": {code, message, retryable}} with the fault's status."""
    body = {"error": {"code": fault.code, "message": str(fault), "retryable": fault.retryable}}
    response = Response(msgspec.json.encode(body), fault.status, content_type=JSON)
    if isinstance(fault, NotReady):
        response.headers["Retry-After"] = str(RETRY_AFTER_S)
    return response
