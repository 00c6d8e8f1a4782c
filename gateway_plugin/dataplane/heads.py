"""Heads of requests and answers: what they say about framing, and how they are written for the next hop. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gshare.head_limits import HEADERS_LIMIT, too_large_text

CRLF = b"\r\n"
Header = tuple[bytes, bytes]

_HOP_BY_HOP = frozenset(
    b"connection proxy-connection keep-alive proxy-authenticate proxy-authorization te trailer transfer-encoding "
    b"upgrade".split()
)
_REQUEST_REWRITTEN = _HOP_BY_HOP | {b"host", b"content-length", b"expect", b"x-start-time"}
_REQUEST_NOTED = _REQUEST_REWRITTEN | {b"x-call-id", b"x-forwarded-for", b"x-forwarded-host"}
_REQUEST_SINGLE = frozenset((b"host", b"transfer-encoding", b"content-length"))
_ANSWER_REWRITTEN = _HOP_BY_HOP | {b"content-length", b"x-start-time", b"x-served-by"}
_ANSWER_NOTED = _ANSWER_REWRITTEN | {b"x-duration-seconds"}
_PLAIN_CONNECTION = (b"", b"close", b"keep-alive", b"Keep-Alive", b"upgrade", b"Upgrade")


class BadHead(ValueError):
    """A head that is not served: `status` and a line saying why."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(slots=True, eq=False)
class RequestHead:
    """A request's head, ready to be written for the next hop."""

    method: bytes
    target: bytes
    http10: bool = False
    keep_alive: bool = False
    lines: list[bytes] = field(default_factory=list)
    """Headers that go on as they came, cut into pieces."""
    host: bytes = b""
    content_length: int | None = None
    chunked: bool = False
    expects_continue: bool = False
    has_call_id: bool = False
    has_forwarded_for: bool = False
    has_forwarded_host: bool = False


def read_request(
    method: bytes, target: bytes, *, version: str, keep_alive: bool, headers: Sequence[Header]
) -> RequestHead:
    """Check a request's head, which the parser has already found well formed.

    Raises:
        BadHead: a version, framing, Host or Expect that is not served, too many headers.
    """
    if version not in ("1.1", "1.0"):
        raise BadHead(505, f"HTTP/{version} is not spoken here; use HTTP/1.1")
    if len(headers) > HEADERS_LIMIT:
        raise BadHead(431, too_large_text())
    lines: list[bytes] = []
    noted: dict[bytes, bytes] = {}
    for name, value in headers:
        key = name.lower()
        if key in _REQUEST_NOTED:
            if key in noted and key in _REQUEST_SINGLE:
                raise BadHead(400, f"bad request: more than one {name.decode('latin-1')} header")
            noted[key] = value
            if key in _REQUEST_REWRITTEN:
                continue
        lines += (name, b": ", value, CRLF)
    if noted.get(b"connection", b"") not in _PLAIN_CONNECTION:
        lines = _without(lines, noted[b"connection"])
    http10 = version == "1.0"
    _check_framing(noted, http10=http10)
    length = noted.get(b"content-length")
    return RequestHead(
        method=method,
        target=target,
        http10=http10,
        keep_alive=keep_alive,
        lines=lines,
        host=noted.get(b"host", b""),
        content_length=None if length is None else int(length),
        chunked=b"transfer-encoding" in noted,
        expects_continue=b"expect" in noted and not http10,
        has_call_id=b"x-call-id" in noted,
        has_forwarded_for=b"x-forwarded-for" in noted,
        has_forwarded_host=b"x-forwarded-host" in noted,
    )


def _check_framing(noted: dict[bytes, bytes], *, http10: bool) -> None:
    if b"host" not in noted and not http10:
        raise BadHead(400, "bad request: no Host header")
    coding = noted.get(b"transfer-encoding")
    if coding is not None:
        if http10:
            raise BadHead(400, "bad request: Transfer-Encoding in HTTP/1.0")
        if coding.lower() != b"chunked":
            raise BadHead(501, f"Transfer-Encoding {coding.decode('latin-1')!r}: only 'chunked' is understood")
        if b"content-length" in noted:
            raise BadHead(400, "bad request: both Content-Length and Transfer-Encoding")
    expect = noted.get(b"expect")
    if expect is not None and expect.lower() != b"100-continue":
        raise BadHead(417, f"Expect {expect.decode('latin-1')!r}: only '100-continue' is understood")


def check_upgrade(head: RequestHead) -> None:
    """An upgrade may be ignored, except with a body: llhttp takes that for the next request.

    Raises:
        BadHead: such a request, or CONNECT.
    """
    if head.method == b"CONNECT":
        raise BadHead(501, "CONNECT is not served here")
    if head.chunked or head.content_length:
        raise BadHead(501, "Upgrade together with a body is not served here; leave the Upgrade header out")


def _without(lines: list[bytes], connection: bytes) -> list[bytes]:
    """Lines whose header is not named in the value of Connection, which makes it hop-by-hop."""
    named = {token.strip().lower() for token in connection.split(b",")}
    kept: list[bytes] = []
    for at in range(0, len(lines), 4):
        if lines[at].lower() not in named:
            kept += lines[at : at + 4]
    return kept


def write_request(head: RequestHead, target: bytes, *, extra: Iterable[bytes]) -> bytes:
    """The head for the next hop; `extra` are complete header lines. One framing header at most."""
    parts = [head.method, b" ", target, b" HTTP/1.1\r\n"]
    if head.host:
        parts += (b"Host: ", head.host, CRLF)
    else:
        parts.append(b"Host: localhost\r\n")
    parts += head.lines
    if head.chunked:
        parts.append(b"Transfer-Encoding: chunked\r\n")
    elif head.content_length is not None:
        parts.append(b"Content-Length: %d\r\n" % head.content_length)
    parts += extra
    parts.append(CRLF)
    return b"".join(parts)


@dataclass(slots=True, eq=False)
class AnswerHead:
    """The head of a replica's answer."""

    status: int
    reason: bytes
    lines: list[bytes]
    content_length: int | None
    chunked: bool
    bodiless: bool
    """No body follows, whatever the headers say: HEAD, 204, 304."""
    has_duration: bool

    @property
    def until_close(self) -> bool:
        """The body ends where the connection does."""
        return self.content_length is None and not self.chunked and not self.bodiless


def read_answer(status: int, reason: bytes, headers: Sequence[Header], *, to_head: bool) -> AnswerHead:
    """What a replica's answer says; `to_head`: it answers a HEAD request.

    Raises:
        BadHead: a transfer coding other than chunked.
    """
    lines: list[bytes] = []
    noted: dict[bytes, bytes] = {}
    for name, value in headers:
        key = name.lower()
        if key in _ANSWER_NOTED:
            noted[key] = value
            if key in _ANSWER_REWRITTEN:
                continue
        lines += (name, b": ", value, CRLF)
    if noted.get(b"connection", b"") not in _PLAIN_CONNECTION:
        lines = _without(lines, noted[b"connection"])
    coding = noted.get(b"transfer-encoding")
    if coding is not None and coding.lower() != b"chunked":
        raise BadHead(502, f"Transfer-Encoding {coding.decode('latin-1')!r}")
    length = noted.get(b"content-length")
    return AnswerHead(
        status=status,
        reason=reason,
        lines=lines,
        content_length=None if length is None else int(length),
        chunked=coding is not None,
        bodiless=to_head or status in (204, 304),
        has_duration=b"x-duration-seconds" in noted,
    )


def write_answer(head: AnswerHead, *, chunked: bool, extra: Iterable[bytes]) -> bytes:
    """The head for the client; `chunked`: how a body of unknown length is framed there."""
    parts = [b"HTTP/1.1 %d %b\r\n" % (head.status, head.reason)]
    parts += head.lines
    if chunked:
        parts.append(b"Transfer-Encoding: chunked\r\n")
    elif head.content_length is not None and head.status != 204:
        parts.append(b"Content-Length: %d\r\n" % head.content_length)
    parts += extra
    parts.append(CRLF)
    return b"".join(parts)


def chunk(pieces: list[bytes]) -> list[bytes]:
    """The pieces as one chunk each; empty pieces are left out, since an empty chunk ends a body."""
    framed: list[bytes] = []
    for piece in pieces:
        if piece:
            framed += (b"%x\r\n" % len(piece), piece, CRLF)
    return framed


LAST_CHUNK = b"0\r\n\r\n"
