"""gunicorn held to our limits of a request's head, and its own refusals (400, 414, 431, 501) in JSON instead of HTML.

gunicorn has no settings for either. What is replaced here is looked at by tests through a real replica.
"""

from __future__ import annotations

import socket
from typing import Any

import gunicorn.http.message
import gunicorn.http.parser
import gunicorn.util
import msgspec

from gshare.head_limits import GATEWAY_BYTES, HEAD_LIMIT_BYTES, too_large_text

HEAD_BYTES = HEAD_LIMIT_BYTES + GATEWAY_BYTES
_TOO_LARGE = (414, 431)


class _Request(gunicorn.http.message.Request):  # type: ignore[misc]
    """A head that does not end is given up at its limit; gunicorn's own is headers times the longest of them, 66 MB."""

    @property
    def max_buffer_headers(self) -> int:
        return HEAD_BYTES

    @max_buffer_headers.setter
    def max_buffer_headers(self, _of_gunicorn: int) -> None:
        """It is what it is."""


def install() -> None:
    """For this process, and those forked from it."""
    gunicorn.http.message.MAX_REQUEST_LINE = HEAD_BYTES  # above it, `limit_request_line` is not heeded
    gunicorn.http.parser.RequestParser.mesg_class = _Request
    gunicorn.util.write_error = write_refusal


def write_refusal(client: socket.socket, status: int, reason: str, text: str) -> None:
    """Answer a request that did not get as far as the app, in the form of all other errors; the connection is over."""
    message = too_large_text() if status in _TOO_LARGE else text or reason
    error: dict[str, Any] = {"code": reason.lower().replace(" ", "_"), "message": message, "retryable": False}
    body = msgspec.json.encode({"error": error})
    head = (
        f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    gunicorn.util.write_nonblock(client, head.encode("latin-1") + body)
