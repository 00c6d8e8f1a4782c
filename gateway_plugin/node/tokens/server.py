"""The token scheduler of one device: a process that grants its time, by the rule, to the replicas it was told of."""

from __future__ import annotations

import logging
import math
import os
import signal
import time
from pathlib import Path

from gshare.token_wire import Acquire, FromHolder, Lost, Ping, Pong, Recall, Return, TokenHello
from gshare.wire import WireError

from gateway_plugin.heartbeat import BEAT_S, Heartbeat
from gateway_plugin.listeners import listen_unix
from gateway_plugin.node.tokens.connection import Connection, open_connection
from gateway_plugin.node.tokens.ledger import SPAN_S, Account, Book
from gateway_plugin.node.tokens.poller import Poller
from gateway_plugin.node.tokens.protocol import (
    ADMIN,
    Admin,
    Answer,
    AskLedger,
    Entry,
    Ledger,
    Refusal,
    Register,
    Resize,
    SetUp,
    Unregister,
    Yes,
)
from gateway_plugin.node.tokens.rule import Admission, Grant, TokenRule, TokenShare
from gateway_plugin.node.tokens.seats import LONGEST_BLOCK_S, Seat

log = logging.getLogger(__name__)


class TokenServer:
    """Sockets around the rule. One thread; every decision is the rule's."""

    def __init__(self, admin_socket: Path) -> None:
        self._poller = Poller()
        self._admin_socket = admin_socket
        self._listener = listen_unix(admin_socket, backlog=8)
        self._listener.setblocking(False)
        self._poller.add(self._listener.fileno(), self._accept_admin)
        self._admins: set[Connection] = set()
        self._set_up: SetUp | None = None
        self._rule: TokenRule | None = None
        self._seats: dict[str, Seat] = {}
        self._book = Book()
        self._tokens = 0
        self._wake_s = math.inf
        self._stopped = False
        self._stop = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller.add(self._stop, lambda: None)

    def run(self, heartbeat: Heartbeat) -> None:
        """Until `stop`."""
        beat_s = 0.0
        while not self._stopped:
            now_s = time.monotonic()
            if now_s >= beat_s:
                heartbeat.beat()
                self._check_strangers(now_s)
                beat_s = now_s + BEAT_S
            self._poller.wait(min(self._wake_s, beat_s))
            self._decide()
        self._close()

    def stop(self) -> None:
        """Ends `run`; may be called from a signal handler or another thread."""
        self._stopped = True
        os.eventfd_write(self._stop, 1)

    # The rule's decisions

    def _decide(self) -> None:
        if self._rule is None:
            return
        now_s = time.monotonic()
        decision = self._rule.decide(now_s)
        self._wake_s = decision.wake_at_s
        for replica in decision.lost:
            self._lost(self._seats[replica], now_s)
        for grant in decision.grants:
            self._grant(self._seats[grant.client], grant, now_s)
        for replica in decision.recalls:
            seat = self._seats[replica]
            if seat.holder is not None:
                seat.holder.send(Recall(seat.token))

    def _grant(self, seat: Seat, grant: Grant, now_s: float) -> None:
        account = self._account(seat)
        account.tokens += 1
        account.waited_s += now_s - seat.asked_s
        self._tokens += 1
        seat.grant(self._tokens, slice_s=grant.slice_s, alone=grant.alone, now_s=now_s)

    def _lost(self, seat: Seat, now_s: float) -> None:
        log.warning("%s: did not return its token in time: it is taken away", seat.asked.replica)
        account = self._account(seat)
        account.lost += 1
        account.book(now_s - seat.granted_s, now_s=now_s)
        if seat.holder is not None:
            seat.holder.send(Lost(seat.token))
        seat.token = 0

    # What replicas say

    def _take(self, seat: Seat, message: FromHolder) -> None:
        """Raises: ValueError for what makes no sense; the connection is then closed."""
        match message:
            case Acquire(longest_block_s=longest_s):
                self._ask(seat, longest_s)
            case Return():
                self._returned(seat, message)
                if message.again:
                    self._ask(seat, message.longest_block_s)
            case Ping():
                if seat.holder is not None:
                    seat.holder.send(Pong())
            case TokenHello():
                raise ValueError("a second hello")

    def _ask(self, seat: Seat, longest_block_s: float) -> None:
        if seat.token or seat.asked_s:
            raise ValueError("it asks for a second token")
        now_s = time.monotonic()
        self._running().ask(seat.asked.replica, now_s, longest_block_s=min(longest_block_s, LONGEST_BLOCK_S))
        seat.asked_s = now_s

    def _returned(self, seat: Seat, message: Return) -> None:
        if message.token != seat.token or not seat.token:
            return  # one that was taken away meanwhile
        now_s = time.monotonic()
        if not 0 <= message.used_s < math.inf:
            raise ValueError(f"used_s {message.used_s}: 0 or more")
        used_s = seat.used_s(message.used_s, now_s)
        self._running().give_back(seat.asked.replica, now_s, used_s=used_s)
        account = self._account(seat)
        account.book(used_s, now_s=now_s)
        account.overused_s += max(0.0, used_s - seat.slice_s)
        seat.token = 0

    def _greeted(self, seat: Seat, hello: TokenHello) -> float:
        if 0 <= hello.used_s < math.inf:
            account = self._account(seat)
            account.used_s = max(account.used_s, hello.used_s)
        assert self._set_up is not None
        return self._set_up.window_s

    def _left(self, seat: Seat, reason: str) -> None:
        """Its connection ended: a token it held counts as used all along, and what it waited for is moot."""
        if reason:
            log.warning("%s: hung up: %s", seat.asked.replica, reason)
        now_s = time.monotonic()
        if seat.token:
            self._account(seat).book(now_s - seat.granted_s, now_s=now_s)
            seat.token = 0
        seat.asked_s = 0.0
        self._running().withdraw(seat.asked.replica, now_s)

    def _account(self, seat: Seat) -> Account:
        return self._book.accounts[seat.asked.replica]

    def _running(self) -> TokenRule:
        assert self._rule is not None  # seats exist only after SetUp
        return self._rule

    def _check_strangers(self, now_s: float) -> None:
        for seat in self._seats.values():
            seat.check_strangers(now_s)

    # What the agent says

    def _accept_admin(self) -> None:
        sock = open_connection(self._listener)
        if sock is not None:
            connection = Connection(sock, ADMIN, take=self._admin, ended=self._admin_ended)
            self._admins.add(connection)
            self._poller.add(connection.fileno(), connection.read)

    def _admin_ended(self, connection: Connection, reason: str) -> None:
        if reason:
            log.warning("admin connection: %s", reason)
        self._admins.discard(connection)
        self._poller.remove(connection.fileno())

    def _admin(self, connection: Connection, request: Admin) -> None:
        try:
            connection.send(self._answer(request))
        except (ValueError, OSError, WireError) as error:
            connection.send(Refusal(f"{error}"))

    def _answer(self, request: Admin) -> Answer:
        match request:
            case SetUp():
                self._prepare(request)
            case AskLedger():
                return self._ledger()
            case _ if self._rule is None:
                return Refusal("this scheduler has not been told its device yet")
            case Register():
                self._register(request)
            case Resize(replica=replica, request=asked, limit=limit):
                self._resize(replica, asked, limit)
            case Unregister(replica=replica):
                self._unregister(replica)
        return Yes()

    def _prepare(self, asked: SetUp) -> None:
        if self._set_up == asked:
            return
        if self._set_up is not None:
            raise ValueError(f"this is the scheduler of {self._set_up.device} already")
        admission = Admission.EXCLUSIVE if asked.exclusive else Admission.SUM
        self._rule = TokenRule(units=asked.units, admission=admission, window_s=asked.window_s)
        self._set_up = asked

    def _register(self, asked: Register) -> None:
        known = self._seats.get(asked.replica)
        if known is not None:
            self._resize(asked.replica, asked.request, asked.limit)
            return
        now_s = time.monotonic()
        share = TokenShare(units=asked.units, request=asked.request, limit=asked.limit)
        self._running().join(asked.replica, share, now_s, account=asked.account)
        try:
            seat = Seat(asked, poller=self._poller, greeted=self._greeted, take=self._take, left=self._left)
        except OSError:
            self._running().leave(asked.replica, now_s)
            raise
        self._seats[asked.replica] = seat
        self._book.open(asked.replica, asked.function, used_s=asked.used_s, now_s=now_s)

    def _resize(self, replica: str, request: float, limit: float) -> None:
        if replica not in self._seats:
            raise ValueError(f"no replica {replica} here")
        self._running().resize(replica, request=request, limit=limit, now_s=time.monotonic())

    def _unregister(self, replica: str) -> None:
        seat = self._seats.get(replica)
        if seat is None:
            return
        seat.close()
        del self._seats[replica]
        self._running().leave(replica, time.monotonic())
        self._book.close(replica)

    def _ledger(self) -> Ledger:
        now_s = time.monotonic()
        device = self._set_up.device if self._set_up else ""
        entries = tuple(self._entry(self._seats[key], now_s) for key in sorted(self._seats))
        return Ledger(device=device, at_s=now_s, span_s=SPAN_S, entries=entries, functions=self._book.functions())

    def _entry(self, seat: Seat, now_s: float) -> Entry:
        account, asked = self._account(seat), seat.asked
        quota = self._running().share_of(asked.replica)
        return Entry(
            replica=asked.replica,
            function=asked.function,
            request=quota.request,
            limit=quota.limit,
            units=asked.units,
            used_s=account.used_s,
            share=account.share(now_s),
            tokens=account.tokens,
            waited_s=account.waited_s,
            overused_s=account.overused_s,
            lost=account.lost,
            connected=seat.holder is not None,
            holding=bool(seat.token),
            held_s=now_s - seat.granted_s if seat.token else 0.0,
            waiting=bool(seat.asked_s),
        )

    def _close(self) -> None:
        for replica in list(self._seats):
            self._unregister(replica)
        for connection in tuple(self._admins):
            connection.close("")
        self._listener.close()
        self._admin_socket.unlink(missing_ok=True)
        self._poller.close()
        os.close(self._stop)


def run_token_server(admin_socket: Path, heartbeat: Heartbeat) -> None:
    """Blocks until SIGTERM or SIGINT."""
    server = TokenServer(admin_socket)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    server.run(heartbeat)
