"""One client's connection: parses requests strictly, serves pipelined ones in order, reads no more than is wanted."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, cast

import httptools
from gshare.head_limits import HEAD_LIMIT_BYTES, too_large_text

from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.deadlines import Deadlines
from gateway_plugin.dataplane.exchange import Exchange
from gateway_plugin.dataplane.heads import BadHead, Header, RequestHead, check_upgrade, read_request
from gateway_plugin.dataplane.refusals import Refusal

if TYPE_CHECKING:
    from gateway_plugin.dataplane.plane import Plane


class _BodyTooLarge(Exception):
    """More body came than is allowed."""


class ClientConnection(asyncio.Protocol):
    """Server side of one connection. The parser's callbacks only record; what follows happens after each read."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.forwarded_for = b""
        """Header line naming the client."""
        self.is_blocked = False
        """The client takes no more of the answer at the moment."""
        self._current: Exchange | None = None
        self._parsing: Exchange | None = None
        self._pipeline: deque[Exchange] = deque()
        self._url = b""
        self._headers: list[Header] = []
        self._body_bytes = 0
        self._barren_bytes = 0
        """Bytes since the last that were body: of a head, or of chunk extensions and trailers."""
        self._in_message = False
        self._reading = True
        self._clock: Deadlines[ClientConnection] | None = None
        """The one that watches this connection: for a head, or for being idle."""
        self._advancing = False
        self._broken = False
        """The parser met what it does not take: nothing more can be read."""
        self._finishing = False
        """No more requests are taken; what comes is discarded."""

    # Used by exchanges

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def write_pieces(self, pieces: list[bytes]) -> None:
        if len(pieces) < 4:
            self._transport.write(b"".join(pieces))
        else:
            self._transport.writelines(pieces)

    def finished(self, exchange: Exchange, *, close: bool) -> None:
        """The answer of the current exchange is written."""
        self._current = None
        if close:
            self._finish(linger=not exchange.body_ended)
            return
        self._advance()
        if self._current is None:
            self._watch(self._plane.head_deadlines if self._in_message else self._plane.idle_deadlines)
            self.update_reading()

    def cut(self) -> None:
        """Close at once: the only way to say that an answer is incomplete."""
        self._transport.abort()

    def update_reading(self) -> None:
        """Read on only while somebody wants what comes."""
        current = self._current
        wanted = not self._pipeline and (current is None or current.wants_body())
        if wanted is self._reading or self._finishing:
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()

    # Used by the worker

    def drain(self) -> None:
        """The worker stops: an idle connection is closed, another after its present request."""
        if self._current is None and not self._in_message:
            self._finish(linger=False)

    def refuse_waiting(self, refusal: Refusal) -> None:
        """The worker stops now: a request that was not sent anywhere gets an answer, another is cut."""
        current = self._current
        if current is not None and current.upstream is None:
            current.refuse(refusal)
        else:
            self.cut()

    def head_overdue(self) -> None:
        """A head was begun, or expected on a new connection, and is not complete in time."""
        if self._in_message:
            self._fail(refusals.head_too_slow(self._plane.head_timeout_s))
        else:
            self._finish(linger=False)

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.forwarded_for = b"X-Forwarded-For: %b\r\n" % _peer_name(transport).encode()
        self._plane.clients.add(self)
        self._watch(self._plane.head_deadlines)

    def data_received(self, data: bytes) -> None:
        if self._finishing or self._broken:
            return
        refusal = self._feed(data)
        if self._current is not None:
            self._current.pump()
        else:
            self._advance()
        if refusal is not None:
            self._fail(refusal)
        elif self._clock is self._plane.idle_deadlines and self._in_message:
            self._watch(self._plane.head_deadlines)
        self.update_reading()

    def eof_received(self) -> None:
        """A client that closes its sending side is taken for gone, as Go's server does: nothing tells the two apart."""

    def pause_writing(self) -> None:
        self.is_blocked = True
        self._plane.stall_deadlines.add(self)
        if self._current is not None and self._current.upstream is not None:
            self._current.upstream.pause_reading()

    def resume_writing(self) -> None:
        self.is_blocked = False
        self._plane.stall_deadlines.discard(self)
        if self._current is not None and self._current.upstream is not None:
            self._current.upstream.resume_reading()

    def connection_lost(self, _exc: Exception | None) -> None:
        self._plane.client_gone(self)
        self._finishing = True
        self._pipeline.clear()
        current, self._current = self._current, None
        if current is not None:
            current.client_gone()

    # Parsing

    def _feed(self, data: bytes) -> Refusal | None:
        """Parse what came; the answer to what cannot be served, if something cannot."""
        self._barren_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # An upgrade may be ignored (RFC 9110 §7.8): what follows is the next request.
            rest = data[upgrade.args[0] :]
            return self._feed(rest) if rest else None
        except httptools.HttpParserError as error:
            return self._refusal_for(error)
        if self._barren_bytes > HEAD_LIMIT_BYTES and self._in_message:
            return refusals.head_too_large()
        return None

    def _refusal_for(self, error: Exception) -> Refusal | None:
        cause = error.__context__
        if isinstance(cause, BadHead):
            return refusals.unsupported(cause.status, str(cause))
        if isinstance(cause, _BodyTooLarge):
            return refusals.body_too_large(self._plane.settings.max_body_bytes)
        if not self._in_message and not self._keeps_alive():
            self._broken = True
            return None  # bytes after a request that said it was the last one
        return refusals.bad_request(str(error))

    def _keeps_alive(self) -> bool:
        last = self._pipeline[-1] if self._pipeline else self._current
        return last is None or last.head.keep_alive

    def on_message_begin(self) -> None:
        self._in_message = True
        self._url = b""
        self._headers = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._parsing is None:  # else a trailer, which is not passed on
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        if self._barren_bytes > HEAD_LIMIT_BYTES:
            self._check_head_size()
        head = read_request(
            parser.get_method(),
            self._url,
            version=parser.get_http_version(),
            keep_alive=parser.should_keep_alive(),
            headers=self._headers,
        )
        if parser.should_upgrade():
            check_upgrade(head)
        if head.content_length is not None and head.content_length > self._plane.settings.max_body_bytes:
            self._record(head)
            raise _BodyTooLarge
        self._record(head)

    def _record(self, head: RequestHead) -> None:
        self._parsing = Exchange(head, client=self, plane=self._plane)
        self._pipeline.append(self._parsing)

    def _check_head_size(self) -> None:
        size = len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)
        if size > HEAD_LIMIT_BYTES:
            raise BadHead(431, too_large_text())

    def on_body(self, data: bytes) -> None:
        exchange = self._parsing
        assert exchange is not None
        self._barren_bytes = 0
        self._body_bytes += len(data)
        if self._body_bytes > self._plane.settings.max_body_bytes:
            raise _BodyTooLarge
        exchange.pending.append(data)

    def on_message_complete(self) -> None:
        assert self._parsing is not None
        self._parsing.body_ended = True
        self._parsing = None
        self._in_message = False
        self._barren_bytes = 0

    # Order

    def _watch(self, clock: Deadlines[ClientConnection] | None) -> None:
        if self._clock is not None:
            self._clock.discard(self)
        self._clock = clock
        if clock is not None:
            clock.add(self)

    def _advance(self) -> None:
        """Start the next request, and the one after it if that is answered at once; a loop, since many may be."""
        if self._advancing:
            return
        self._advancing = True
        while self._current is None and self._pipeline and not self._finishing:
            self._watch(None)
            self._current = self._pipeline.popleft()
            self._current.start()
        self._advancing = False

    def _fail(self, refusal: Refusal) -> None:
        """What is being parsed cannot be served: answer it when its turn comes, and take nothing after it."""
        self._broken = True
        self._watch(None)
        exchange = self._parsing
        if exchange is None:
            exchange = Exchange(RequestHead(b"-", b"-"), client=self, plane=self._plane)
            self._pipeline.append(exchange)
        exchange.failure = refusal
        if exchange is self._current:
            exchange.refuse(refusal)
        else:
            self._advance()

    def _finish(self, *, linger: bool) -> None:
        """Close after what is written. With `linger`, first let the client read it while it may still be sending."""
        if self._finishing:
            return
        self._finishing = True
        self._pipeline.clear()
        if not linger or self._transport.is_closing():
            self._transport.close()
            self._plane.stall_deadlines.add(self)
            return
        self._transport.write_eof()
        self._transport.resume_reading()
        self._plane.linger_deadlines.add(self)


def _peer_name(transport: asyncio.BaseTransport) -> str:
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple):
        return "unknown"
    return f"[{peer[0]}]:{peer[1]}" if ":" in peer[0] else f"{peer[0]}:{peer[1]}"
