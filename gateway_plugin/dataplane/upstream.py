"""One connection to a replica (or to the control API): writes requests, parses answers, one exchange at a time."""

from __future__ import annotations

import asyncio
import socket
from typing import Protocol, cast

import httptools
from gshare.head_limits import HEAD_LIMIT_BYTES

from gateway_plugin.dataplane.heads import AnswerHead, BadHead, Header, read_answer

_PEEK = int(socket.MSG_PEEK | socket.MSG_DONTWAIT)


class Asker(Protocol):
    """Who waits for the answer."""

    def answered(self, head: AnswerHead | None, body: list[bytes], ended: bool) -> None:
        """What one read brought: the head once, then pieces of body; `ended` with the last of them."""

    def upstream_lost(self, reason: str, *, garbled: bool) -> None:
        """The connection ended before the answer did; `garbled`: because what came is not HTTP."""

    def upload_blocked(self, blocked: bool) -> None:
        """Whether the replica takes more of the request now."""


class Keeper(Protocol):
    """Who keeps idle connections."""

    def keep(self, upstream: Upstream) -> None:
        """An answer is complete and the connection can serve again."""

    def forget(self, upstream: Upstream) -> None:
        """The connection is closed."""


class Upstream(asyncio.Protocol):
    """A kept-alive HTTP/1.1 client connection."""

    def __init__(self, keeper: Keeper, sock: socket.socket) -> None:
        self._keeper = keeper
        self._socket = sock
        self._asker: Asker | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport = cast(asyncio.Transport, None)
        self._to_head = False
        self.idle_since_s = 0.0
        """When it was last kept, by the event loop's clock."""
        self._begin_answer()

    def _begin_answer(self) -> None:
        self._headers: list[Header] = []
        self._header_bytes = 0
        self._reason = b""
        self._head: AnswerHead | None = None
        self._in_head = True
        self._until_close = False
        self._interim = False
        self._body: list[bytes] = []
        self._ended = False
        self._reusable = False

    # Used by whoever asks

    def alive(self) -> bool:
        """Whether an idle connection is still open on the other side, looked up in the kernel."""
        if self._transport.is_closing():
            return False
        try:
            self._socket.recv(1, _PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False  # end of stream, or bytes that nobody asked for

    def ask(self, asker: Asker, *, to_head: bool) -> None:
        """Begin an exchange; its request is then sent with `send`."""
        self._asker = asker
        self._to_head = to_head
        self._begin_answer()

    def send(self, pieces: list[bytes]) -> None:
        if len(pieces) == 1:
            self._transport.write(pieces[0])
        else:
            self._transport.writelines(pieces)

    def done(self, *, sent_whole: bool) -> None:
        """The exchange is over. The connection is kept if both sides finished; else it is cut."""
        self._asker = None
        if sent_whole and self._reusable:
            self._transport.resume_reading()
            self._keeper.keep(self)
        else:
            self.cut()

    def cut(self) -> None:
        """Close at once, whatever is under way."""
        self._asker = None
        self._transport.abort()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        asker = self._asker
        if asker is None:
            self.cut()  # it talks without being asked; nothing it says can be trusted any more
            return
        problem = self._feed(data)
        head, self._head = self._head, None
        body, self._body = self._body, []
        if self._ended:
            asker.answered(head, body, True)
        elif problem:
            self.cut()
            asker.upstream_lost(problem, garbled=True)
        elif head is not None or body:
            asker.answered(head, body, False)

    def _feed(self, data: bytes) -> str:
        """What is wrong with the answer, or an empty text."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._reusable = False
            return "it switched protocols"
        except httptools.HttpParserError as error:
            self._reusable = False
            return str(error.__context__ or error)
        if self._ended and self._to_head:
            # llhttp cannot be told that no body follows; it would take the next answer for this one's body.
            self._parser = httptools.HttpResponseParser(self)
        if self._in_head:
            self._header_bytes += len(data)
            if self._header_bytes > HEAD_LIMIT_BYTES:
                return f"its head is over {HEAD_LIMIT_BYTES} bytes"
        return ""

    def pause_writing(self) -> None:
        if self._asker is not None:
            self._asker.upload_blocked(True)

    def resume_writing(self) -> None:
        if self._asker is not None:
            self._asker.upload_blocked(False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._keeper.forget(self)
        asker, self._asker = self._asker, None
        if asker is None:
            return
        if self._until_close and exc is None:
            self._reusable = False
            asker.answered(None, [], True)
        else:
            asker.upstream_lost(str(exc or "end of stream"), garbled=False)

    # Called by the parser, inside _feed

    def on_message_begin(self) -> None:
        if self._ended:
            raise BadHead(502, "more bytes than one answer")

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # else a trailer, which is not passed on
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self._interim = True
            return
        self._head = read_answer(status, self._reason, self._headers, to_head=self._to_head)
        self._in_head = False
        self._until_close = self._head.until_close
        if self._to_head:
            self._end()

    def on_body(self, data: bytes) -> None:
        if not self._to_head:
            self._body.append(data)

    def on_message_complete(self) -> None:
        if self._interim:
            self._interim = False
            self._headers = []
            self._reason = b""
        elif not self._ended:
            self._end()

    def _end(self) -> None:
        self._ended = True
        self._reusable = not self._until_close and self._parser.should_keep_alive()
