"""Time sharing, a replica's side: it computes only with a token of its device's scheduler in hand.

While that is away the replica goes on at its own guaranteed rate, and asks again as soon as it is back.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
import time
from collections.abc import Callable

from gshare.hold import Hold
from gshare.pace import Pace
from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Grant, Return
from gshare.turn import Gating, TurnClock, TurnCounts
from gshare.wire import WireError

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.02
LAST_RETRY_S = 0.1
"""Often: until all are back, those of one core compute side by side, each at its pace and slower than in turns."""
HANDSHAKE_TIMEOUT_S = 5.0
CHECK_S = 1.0
"""How often an idle replica looks whether its scheduler is still there."""
OVERDUE_S = 0.02
"""How often the second thread looks again at a slice that is over while its block still runs."""
UNKNOWN_BLOCK_S = 10.0
"""What is assumed of the first pass: nobody knows yet how long it takes."""


class TokenClient:
    """Computes only with a token in hand. `begin`, `point`, `end` and `idle` belong to one thread.

    That thread reads the socket itself while it waits for a token, so that a grant wakes nobody else. A token that is
    kept while nothing runs is looked after by a second thread, which returns it when it is recalled.
    """

    def __init__(
        self,
        path: str,
        credential: str,
        *,
        request: Callable[[], float],
        synchronize: Callable[[], None] = lambda: None,
    ) -> None:
        """`request` says the guaranteed share of the moment, `synchronize` waits until the device has done its work."""
        self._path, self._credential = path, credential
        self._request, self._synchronize = request, synchronize
        self._changed = threading.Condition(threading.Lock())
        self._link: TokenLink | None = None
        self._hold = Hold()
        self._watched = False
        """The second thread reads the socket; else the computing one does."""
        self._clock = TurnClock()
        self._waited_s = 0.0
        self._tokens = 0
        self._pace = Pace(rate=1.0, window_s=0.2)
        self._reason = "not connected yet"
        self._settled = threading.Event()
        self._stopped = threading.Event()
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._thread = threading.Thread(target=self._run, name="gshare-token", daemon=True)

    @property
    def gating(self) -> Gating:
        return Gating.TOKENS if self._link is not None else Gating.PACED

    @property
    def reason(self) -> str:
        """Why it paces itself; empty while it has a scheduler."""
        return "" if self._link is not None else self._reason

    @property
    def counts(self) -> TurnCounts:
        return TurnCounts(self._clock.total_s, self._waited_s, self._tokens, self._clock.longest_block_s)

    def start(self) -> None:
        self._thread.start()

    def wait_settled(self, timeout_s: float) -> bool:
        """Whether the scheduler gave its first answer within that time."""
        return self._settled.wait(timeout_s)

    def stop(self) -> None:
        """Leave for good; a token in hand goes back with the connection."""
        self._stopped.set()
        with self._changed:
            link, self._link, self._watched = self._link, None, False
            self._hold.let_go()
            self._changed.notify_all()
        if link is not None:
            link.shutdown()
        os.eventfd_write(self._wake, 1)
        self._thread.join()
        os.close(self._wake)

    def begin(self) -> None:
        if self._hold.grant is not None and not self._watched:
            self._look()
        with self._changed:
            now_s = time.monotonic()
            if self._hold.usable(now_s):
                self._clock.start(now_s)
                return
        self._obtain()

    def point(self) -> None:
        now_s = time.monotonic()
        self._clock.block_ended(now_s)
        if not self._must_yield(now_s):
            return
        self._synchronize()
        self._stop_clock()
        self._obtain()

    def end(self) -> None:
        self._clock.pass_ended(time.monotonic())
        self._stop_clock()

    def idle(self) -> None:
        with self._changed:
            held = self._hold.grant
            if held is not None and (self._hold.recalled or not held.alone):
                self._give_back()

    def over(self) -> bool:
        return self._must_yield(time.monotonic())

    def _stop_clock(self) -> None:
        with self._changed:
            now_s = time.monotonic()
            used_s = self._clock.stop(now_s)
            if self._hold.grant is None:
                self._pace.spent(used_s, now_s)

    # Getting and giving back a token

    def _must_yield(self, now_s: float) -> bool:
        if self._hold.grant is None:
            return self._link is not None or self._pace.wait_s(now_s) > 0
        if not self._watched:
            self._look()
        return not self._hold.usable(now_s)

    def _look(self) -> None:
        with self._changed:
            if self._link is not None:
                self._read(self._link)

    def _read(self, link: TokenLink) -> None:
        """Hear what has come, without waiting."""
        try:
            while message := link.receive(0):
                self._hold.hear(message)
        except WireError as error:
            self._drop(link, str(error))

    def _obtain(self) -> None:
        """Wait for a token, or without a scheduler for the pace to allow a block; the clock runs when this returns."""
        started_s = time.monotonic()
        while not self._ask():
            if self._allowed():
                self._clock.start(time.monotonic())
                break
        self._waited_s += time.monotonic() - started_s

    def _ask(self) -> bool:
        with self._changed:
            link = self._link
            if link is None:
                return False
            self._stop_watching()
            try:
                self._send_ask(link)
            except WireError as error:
                self._drop(link, str(error))
                return False
        try:
            grant = link.wait_for_grant()
        except WireError as error:
            with self._changed:
                self._drop(link, str(error))
            return False
        self._granted(grant)
        return True

    def _send_ask(self, link: TokenLink) -> None:
        held = self._hold.let_go()
        if held is None:
            link.send(Acquire(self._clock.longest_block_s or UNKNOWN_BLOCK_S))
        else:
            link.send(Return(held.token, self._clock.take(), self._clock.longest_block_s, again=True))

    def _granted(self, grant: Grant) -> None:
        with self._changed:
            now_s = time.monotonic()
            self._hold.take(grant, now_s)
            self._clock.take()  # what was used without a token is none of this one's
            self._clock.start(now_s)  # under the lock: or the second thread could return it before it is used
            self._tokens += 1
            if grant.alone:
                self._watched = True
                self._changed.notify_all()

    def _give_back(self) -> None:
        link, held = self._link, self._hold.let_go()
        self._stop_watching()
        if link is None or held is None:
            return
        try:
            link.send(Return(held.token, self._clock.take(), self._clock.longest_block_s))
        except WireError as error:
            self._drop(link, str(error))

    def _stop_watching(self) -> None:
        if self._watched:
            self._watched = False
            os.eventfd_write(self._wake, 1)

    def _allowed(self) -> bool:
        """Without a scheduler: wait for the pace; False as soon as there is one again."""
        with self._changed:
            while self._link is None and not self._stopped.is_set():
                self._pace.rate = self._request()
                wait_s = self._pace.wait_s(time.monotonic())
                if wait_s <= 0:
                    return True
                self._changed.wait(wait_s)
            return self._stopped.is_set()

    def _drop(self, link: TokenLink, reason: str) -> None:
        """The connection is of no use any more, and a token from it is none."""
        if self._link is not link:
            return
        self._link, self._watched = None, False
        self._hold.let_go()
        self._lost(reason)
        link.shutdown()
        os.eventfd_write(self._wake, 1)
        self._changed.notify_all()

    def _lost(self, reason: str) -> None:
        if reason != self._reason and not self._stopped.is_set():
            log.warning("no token scheduler (%s); pacing itself, and trying again", reason)
        self._reason = reason

    # The second thread: connects, and looks after a token while nothing runs

    def _run(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._stopped.is_set():
            link = self._connect()
            if link is None:
                self._stopped.wait(retry_s)
                retry_s = min(2 * retry_s, LAST_RETRY_S)
                continue
            retry_s = FIRST_RETRY_S
            self._watch(link)
            link.close()

    def _connect(self) -> TokenLink | None:
        try:
            link, welcome = TokenLink.open(
                self._path, self._credential, used_s=self._clock.total_s, timeout_s=HANDSHAKE_TIMEOUT_S
            )
        except (OSError, WireError) as error:
            self._lost(str(error))
            return None
        with self._changed:
            self._pace = Pace(rate=self._request(), window_s=welcome.window_s)
            self._link, self._reason = link, ""
            self._changed.notify_all()
        self._settled.set()
        log.info("connected to the device's token scheduler")
        return link

    def _watch(self, link: TokenLink) -> None:
        poller = select.poll()
        poller.register(link, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        while self._link is link:
            with self._changed:
                if self._link is link and not self._watched:
                    self._changed.wait(CHECK_S)
                    self._check(link)
                if not self._watched:
                    continue
                wait_s = self._hold.slice_end_s - time.monotonic()
            poller.poll(1000 * (wait_s if wait_s > 0 else OVERDUE_S) + 1)
            with self._changed:
                self._woken(link)

    def _check(self, link: TokenLink) -> None:
        """Whether it is still there, while nobody reads; what there is to read stays for whoever does."""
        if self._link is link and link.ended():
            self._drop(link, "it closed the connection")

    def _woken(self, link: TokenLink) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        if not self._watched or self._link is not link:
            return
        self._read(link)
        if self._hold.grant is None:
            self._watched = False
        elif not self._clock.running and self._hold.to_return(time.monotonic()):
            self._give_back()
