"""One request from its head to the last byte of its answer: waiting, sent, answered, and who is told when it breaks."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.callid import new_call_id
from gateway_plugin.dataplane.heads import (
    LAST_CHUNK,
    AnswerHead,
    RequestHead,
    chunk,
    write_answer,
    write_request,
)
from gateway_plugin.dataplane.refusals import Refusal

if TYPE_CHECKING:
    from gateway_plugin.dataplane.client import ClientConnection
    from gateway_plugin.dataplane.destination import Destination, Lease
    from gateway_plugin.dataplane.plane import Plane
    from gateway_plugin.dataplane.upstream import Upstream

_LOG = logging.getLogger(__name__)
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"Connection: close\r\n"
KEEP_ALIVE = b"Connection: keep-alive\r\n"


class Exchange:
    """One request and its answer. Owns the place it takes at a replica and gives it back exactly once."""

    __slots__ = (
        "_answer",
        "_answer_begun",
        "_chunked_answer",
        "_client",
        "_extra",
        "_plane",
        "_said_close",
        "_sent_whole",
        "_start_ns",
        "body_ended",
        "destination",
        "failure",
        "head",
        "invocation",
        "lease",
        "over",
        "pending",
        "queued",
        "target",
        "upload_is_blocked",
        "upstream",
    )

    def __init__(self, head: RequestHead, *, client: ClientConnection, plane: Plane) -> None:
        self.head = head
        self.target = head.target
        self.pending: list[bytes] = []
        """Body pieces that came and are not sent on yet: at most what one read brought."""
        self.body_ended = False
        self.failure: Refusal | None = None
        """Set before the start: the request is not to be served, only answered."""
        self.destination: Destination | None = None
        self.invocation = False
        """It calls a function."""
        self.queued = False
        """The queue's clock runs for it."""
        self.lease: Lease | None = None
        self.upstream: Upstream | None = None
        self.upload_is_blocked = False
        self.over = False
        self._client = client
        self._plane = plane
        self._start_ns = time.time_ns()
        self._sent_whole = False
        self._answer: AnswerHead | None = None
        self._answer_begun = False
        self._chunked_answer = False
        self._extra = b""
        self._said_close = False

    # From the client's connection

    def start(self) -> None:
        """It is this request's turn on its connection."""
        if self.failure is not None:
            self.refuse(self.failure)
        else:
            self.go_to(self._plane.destination(self))

    def go_to(self, destination: Destination) -> None:
        self.destination = destination
        destination.submit(self)

    def pump(self) -> None:
        """Send on what has come of the body."""
        upstream = self.upstream
        if upstream is None or self._sent_whole:
            return
        pieces = self._take_pending()
        if pieces:
            upstream.send(pieces)

    def _take_pending(self) -> list[bytes]:
        pieces, self.pending = self.pending, []
        if self.head.chunked:
            pieces = chunk(pieces)
            if self.body_ended:
                pieces.append(LAST_CHUNK)
        self._sent_whole = self.body_ended
        return pieces

    def client_gone(self) -> None:
        """Nobody waits for the answer any more; what is under way is cut."""
        if not self.over:
            _LOG.info("client of %s gone after %.3f s", self._hop(), self._duration_s())
            self._close("client_cancelled")

    def wants_body(self) -> bool:
        """Whether the client's connection should be read for more of this request."""
        if self.body_ended:
            return True  # nothing more of it comes, but the client's going away has to be seen
        return self.upstream is not None and not self.upload_is_blocked

    # From the destination

    def bind(self, upstream: Upstream) -> None:
        """A connection to send it on."""
        self.upstream = upstream
        head = self.head
        upstream.ask(self, to_head=head.method == b"HEAD")
        self._plane.answer_deadlines.add(self)
        if head.expects_continue and not self.body_ended and not self.pending:
            self._client.write(CONTINUE)
        first = write_request(head, self.target, extra=self._forwarding())
        pieces = self._take_pending()
        pieces.insert(0, first)
        upstream.send([b"".join(pieces)] if len(pieces) < 4 else pieces)
        if self._client.is_blocked:
            upstream.pause_reading()
        self._client.update_reading()

    def _forwarding(self) -> list[bytes]:
        """Header lines that this hop adds to the request, and notes those it adds to the answer."""
        head = self.head
        extra = []
        if self.invocation:
            start = b"X-Start-Time: %d\r\n" % self._start_ns
            extra.append(start)
            self._extra = start + self._plane.served_by
            if not head.has_call_id:
                call_id = b"X-Call-Id: %b\r\n" % new_call_id()
                extra.append(call_id)
                self._extra += call_id
        if not head.has_forwarded_for:
            extra.append(self._client.forwarded_for)
        if not head.has_forwarded_host and head.host:
            extra.append(b"X-Forwarded-Host: %b\r\n" % head.host)
        return extra

    def refuse(self, refusal: Refusal) -> None:
        """Answer in the place of the replica, or cut the client off if the answer has begun."""
        if self.over:
            return
        if refusal.status >= 500:
            _LOG.warning("%s: %d %s", self.head.target.decode("latin-1"), refusal.status, refusal.text)
        if self._answer_begun:
            self._close(refusal.outcome)
            self._client.cut()
            return
        close = self._must_close() or not self.body_ended
        self._client.write(
            refusals.encode(
                refusal,
                extra=self._extra,
                head_only=self.head.method == b"HEAD",
                connection=self._connection_line(close),
            )
        )
        self._close(refusal.outcome)
        self._client.finished(self, close=close)

    # From the upstream connection

    def answered(self, head: AnswerHead | None, body: list[bytes], ended: bool) -> None:
        if head is not None:
            self._plane.answer_deadlines.discard(self)
            self._answer = head
        answer = self._answer
        assert answer is not None
        if not self._answer_begun:
            if not ended and not body and answer.content_length:
                return  # its body is about to come: head and body go out in one write
            pieces = [self._answer_head(answer, ended)]
        else:
            pieces = []
        pieces += chunk(body) if self._chunked_answer else body
        if ended and self._chunked_answer:
            pieces.append(LAST_CHUNK)
        self._client.write_pieces(pieces)
        if ended:
            self._finish()

    def _answer_head(self, answer: AnswerHead, ended: bool) -> bytes:
        self._answer_begun = True
        self._chunked_answer = answer.content_length is None and not answer.bodiless and not self.head.http10
        extra = [self._extra]
        if ended and self.invocation and not answer.has_duration:
            extra.append(b"X-Duration-Seconds: %.6f\r\n" % self._duration_s())
        self._said_close = self._must_close(answer)
        extra.append(self._connection_line(self._said_close))
        return write_answer(answer, chunked=self._chunked_answer, extra=extra)

    def _finish(self) -> None:
        close = self._said_close or self._plane.draining or not self.body_ended
        self._close("completed")
        self._client.finished(self, close=close)

    def upstream_lost(self, reason: str, *, garbled: bool) -> None:
        hop = self._hop()
        self.upstream = None
        self.refuse(refusals.not_http(hop, reason) if garbled else refusals.lost_before_answer(hop))

    def upload_blocked(self, blocked: bool) -> None:
        self.upload_is_blocked = blocked
        self._client.update_reading()

    # From the clock

    def answer_overdue(self) -> None:
        """The upstream timeout has passed without an answer's head."""
        limit_s = self._plane.settings.upstream_timeout_s
        if self.body_ended:
            self.refuse(refusals.too_slow(self._hop(), limit_s))
        else:
            self.refuse(refusals.body_too_slow(limit_s))

    def queue_overdue(self) -> None:
        """The queue timeout has passed without a connection."""
        if self.destination is not None:
            self.destination.overdue(self)

    # Shared

    def _hop(self) -> str:
        if self.lease is not None:
            return self.lease.hop
        return self.destination.hop if self.destination is not None else "nobody yet"

    def _duration_s(self) -> float:
        return (time.time_ns() - self._start_ns) / 1e9

    def _must_close(self, answer: AnswerHead | None = None) -> bool:
        """Whether the client's connection ends with this answer."""
        if not self.head.keep_alive or self._plane.draining:
            return True
        return answer is not None and self.head.http10 and answer.content_length is None and not answer.bodiless

    def _connection_line(self, close: bool) -> bytes:
        if close:
            return CLOSE
        return KEEP_ALIVE if self.head.http10 else b""

    def _close(self, outcome: str) -> None:
        """Give everything back, once."""
        self.over = True
        plane = self._plane
        upstream, self.upstream = self.upstream, None
        if upstream is not None:
            upstream.done(sent_whole=self._sent_whole)
        elif self.destination is not None:
            self.destination.withdraw(self)
        if self._answer is None:
            plane.answer_deadlines.discard(self)
        lease, self.lease = self.lease, None
        if lease is not None:
            lease.release()
        plane.outcomes[outcome] += 1
