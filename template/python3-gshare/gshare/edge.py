"""The edge of a call, whatever its protocol: read from Flask, counted, its errors mapped here and nowhere else."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from urllib.parse import quote, unquote

import flask
import msgspec
from flask import Response
from werkzeug.exceptions import HTTPException, RequestEntityTooLarge
from werkzeug.wrappers import Response as AnyResponse

from gshare.errors import BadInput, DeviceLost, GshareError, ModelFault, OutOfMemory, TooLarge
from gshare.reply import JSON
from gshare.request import Request, Upload
from gshare.runtime import Runtime

log = logging.getLogger(__name__)

LONGEST_MESSAGE = 1000


def answered(
    runtime: Runtime, answer: Callable[[], AnyResponse], *, refuse: Callable[[GshareError], AnyResponse]
) -> AnyResponse:
    """`answer`'s response, or the one that `refuse` makes of its error; either way the call is counted."""
    started_s = time.monotonic()
    with runtime.metrics.in_flight:
        try:
            response = answer()
        except GshareError as error:
            response = refuse(_noted(runtime, error))
        except Exception as error:  # edge of a request: nothing a single one does may take the worker down
            log.error("unexpected fault", exc_info=error)
            fault = ModelFault(f"the runtime failed on this request ({type(error).__name__}); its log has the trace")
            response = refuse(_noted(runtime, fault))
    runtime.metrics.answered(response.status_code, time.monotonic() - started_s)
    return response


def error_response(fault: GshareError) -> Response:
    """JSON {"error": {code, message, retryable}} with the fault's status."""
    body = {"error": {"code": fault.code, "message": message_of(fault), "retryable": fault.retryable}}
    return Response(msgspec.json.encode(body), fault.status, retry_headers(fault), content_type=JSON)


def message_of(fault: GshareError) -> str:
    """Its text, cut where a client's own values make it a long one."""
    text = str(fault)
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"


def retry_headers(fault: GshareError) -> dict[str, str]:
    """Retry-After, where the fault says when."""
    return {} if fault.retry_after_s is None else {"Retry-After": str(fault.retry_after_s)}


def read_request(max_body_bytes: int) -> Request:
    """The current Flask request as a handler gets it. Raises: TooLarge, BadInput."""
    sent = flask.request
    try:
        body = sent.get_data()
        files = {
            name or "": Upload(file.filename or "", file.mimetype, file.stream.read())
            for name, file in sent.files.items()
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


def _noted(runtime: Runtime, fault: GshareError) -> GshareError:
    if isinstance(fault, (ModelFault, OutOfMemory, DeviceLost)):
        log.error("%s: %s", fault.code, fault, exc_info=fault.__cause__)
    runtime.metrics.error(fault.code)
    return fault


def _raw_path(uri: str, decoded: str) -> str:
    """The path as it was sent: Flask's own has its leading slashes merged and its escapes resolved."""
    path = uri.partition("?")[0]
    return path if path.startswith("/") else quote(decoded)
