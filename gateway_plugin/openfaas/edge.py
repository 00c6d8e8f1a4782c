"""The edge of the control API: errors become status and one line of text here, and nowhere else."""

from __future__ import annotations

import logging

import msgspec
from flask import Flask, Response
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, RequestEntityTooLarge

from gateway_plugin.errors import PluginError
from gateway_plugin.openfaas import headers
from gateway_plugin.openfaas.bodies import BODY_BYTES_LIMIT

RETRY_AFTER_S = 2
"""When a caller may try again while Redis is away."""
_log = logging.getLogger(__name__)


def accepted(*, revision: str = "", unchanged: bool = False) -> Response:
    """202 with an empty body: OpenFaaS's answer to every change (faas-cli takes 201 for a failure)."""
    answer = _response(b"", status=202)
    if revision:
        answer.headers[headers.REVISION] = revision
    if unchanged:
        answer.headers[headers.UNCHANGED] = "yes"
    return answer


def json_response(value: object) -> Response:
    return _response(msgspec.json.encode(value), content_type="application/json")


def text_response(text: str, *, status: int) -> Response:
    return _response(f"{text}\n".encode(), status=status)


def install_error_mapper(app: Flask) -> None:
    """Answer errors as OpenFaaS's router and providers do."""
    app.register_error_handler(PluginError, _plugin_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unexpected)


def _response(body: bytes, *, status: int = 200, content_type: str = "text/plain; charset=utf-8") -> Response:
    return Response(body, status=status, content_type=content_type)


def _plugin_error(error: PluginError) -> Response:
    if error.status >= 500:
        _log.error("%s: %s", error.code, error)
    answer = text_response(str(error), status=error.status)
    if error.retryable:
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
    return answer


def _http_error(error: HTTPException) -> Response:
    if isinstance(error, NotFound):
        return text_response("404 page not found", status=404)
    if isinstance(error, MethodNotAllowed):
        answer = _response(b"", status=405)
        answer.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
        return answer
    if isinstance(error, RequestEntityTooLarge):
        return text_response(f"body: over {BODY_BYTES_LIMIT} bytes, the limit for control calls", status=413)
    return text_response(error.description or error.name, status=error.code or 500)


def _unexpected(error: Exception) -> Response:
    # A request's edge: whatever a handler did not foresee must not take the worker down, nor show its inside.
    _log.error("unexpected error in a control call", exc_info=error)
    return text_response("internal error; the api log has the details", status=500)
