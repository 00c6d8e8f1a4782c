"""Every answer that the data plane makes itself, in one place: status, and one line that says what and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus

from gshare.head_limits import too_large_text


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer in the place of a function's."""

    status: int
    text: str
    outcome: str
    """What it is counted as."""
    retry_after_s: int | None = None


def encode(refusal: Refusal, *, extra: bytes, head_only: bool, connection: bytes) -> bytes:
    """The whole answer. `extra` and `connection` are complete header lines, or empty."""
    body = refusal.text.encode("utf-8", "replace") + b"\n"
    retry = b"" if refusal.retry_after_s is None else b"Retry-After: %d\r\n" % refusal.retry_after_s
    head = (
        b"HTTP/1.1 %d %b\r\nContent-Type: text/plain; charset=utf-8\r\nX-OpenFaaS-Internal: proxy\r\n"
        b"Content-Length: %d\r\n" % (refusal.status, HTTPStatus(refusal.status).phrase.encode(), len(body))
    )
    return head + retry + extra + connection + b"\r\n" + (b"" if head_only else body)


def bad_request(text: str) -> Refusal:
    return Refusal(400, f"bad request: {text}", "bad_request")


def head_too_large() -> Refusal:
    return Refusal(431, too_large_text(), "too_large")


def head_too_slow(limit_s: float) -> Refusal:
    return Refusal(408, f"the request's head was not complete within {limit_s:g} s", "client_slow")


def body_too_large(limit_bytes: int) -> Refusal:
    return Refusal(413, f"the request's body is over {limit_bytes} bytes (GSHARE_MAX_BODY_BYTES)", "too_large")


def unsupported(status: int, text: str) -> Refusal:
    return Refusal(status, text, "bad_request")


def unknown_function(name: str) -> Refusal:
    return Refusal(
        404, f"function {name[:80]} is not deployed; GET /system/functions lists those that are", "not_found"
    )


def no_routes() -> Refusal:
    return Refusal(
        503, "this worker has no routing table: Redis was not reached, or nothing published one", "not_ready", 1
    )


def queue_full(where: str, limit: int) -> Refusal:
    return Refusal(
        429,
        f"{where}: {limit} requests wait already in this worker (GSHARE_QUEUE_LIMIT); try again later",
        "queue_full",
        1,
    )


def queue_timeout(name: str, *, limit_s: float, ready: int) -> Refusal:
    why = f"all {ready} ready replicas stayed full or out of reach" if ready else "no replica became ready"
    return Refusal(503, f"function {name}: {why} within {limit_s:g} s (GSHARE_QUEUE_TIMEOUT_S)", "queue_timeout", 5)


def stopping() -> Refusal:
    return Refusal(503, "this worker stops and the request had not begun; send it again", "stopping", 1)


def unreachable(hop: str, *, limit_s: float, error: OSError) -> Refusal:
    return Refusal(
        503, f"{hop} could not be reached within {limit_s:g} s (GSHARE_QUEUE_TIMEOUT_S): {error}", "unreachable", 1
    )


def lost_before_answer(hop: str) -> Refusal:
    return Refusal(
        503,
        f"{hop} closed the connection after it was sent the request and before it answered; work may have been done",
        "upstream_lost",
        1,
    )


def not_http(hop: str, reason: str) -> Refusal:
    return Refusal(502, f"{hop} did not answer in HTTP/1.1: {reason}", "upstream_garbled")


def too_slow(hop: str, limit_s: float) -> Refusal:
    return Refusal(
        504, f"{hop} did not begin its answer within {limit_s:g} s (GSHARE_UPSTREAM_TIMEOUT_S)", "upstream_timeout"
    )


def body_too_slow(limit_s: float) -> Refusal:
    return Refusal(
        408, f"the request's body was not complete within {limit_s:g} s (GSHARE_UPSTREAM_TIMEOUT_S)", "client_slow"
    )
