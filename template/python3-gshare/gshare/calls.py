"""Calls of the function: so many at once and no more, each for at most its time.

A call runs in a thread of the pool; its client's thread waits for it no longer than its deadline. A thread cannot be
stopped, so a call that goes on beyond its deadline keeps its place until it really ends: the limit is one on what runs,
not on what is waited for. One that does not end even in the grace that follows the function's own limit, whatever its
client asked for, is reported as stuck.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from gshare.deadline import Deadline
from gshare.errors import Overloaded

GRACE_S = 10.0
"""How long a call may go on after the function's limit; with a shorter limit, as much again as that."""
Value = TypeVar("Value")


class Calls:
    """The places that there are, and the threads that work in them."""

    def __init__(
        self, *, limit: int, queue: int = 0, longest_s: float = math.inf, on_stuck: Callable[[str], None]
    ) -> None:
        """`limit` calls run at once and `queue` more may wait for their turn.

        `on_stuck` is told of a call that goes on although none may take longer than `longest_s`.
        """
        self.limit = limit
        self.queue = queue
        self._longest_s = longest_s
        self._on_stuck = on_stuck
        self._taken = 0
        self._changing = threading.Lock()
        self._pool = ThreadPoolExecutor(limit, thread_name_prefix="gshare-call")

    @property
    def full(self) -> bool:
        """Whether a call that comes now would have to wait, or be refused."""
        return self._taken >= self.limit

    @contextmanager
    def place(self, deadline: Deadline) -> Iterator[Place]:
        """A place for one call, for the length of the block or until its work has ended. Raises: Overloaded."""
        self._take()
        place = Place(self._pool, deadline, on_abandoned=self._watch)
        try:
            yield place
        finally:
            place.when_empty(self._release)

    def close(self) -> None:
        """No further work; what runs is left to itself."""
        self._pool.shutdown(wait=False)

    def _watch(self, future: Future[Any], spent_s: float) -> None:
        """Look at an abandoned call again when even the function's own limit is well over."""
        if math.isinf(self._longest_s):
            return
        grace_s = min(self._longest_s, GRACE_S)

        def check() -> None:
            if not future.done():
                self._on_stuck(f"a call went on for {grace_s:g} s beyond its limit of {self._longest_s:g} s")

        timer = threading.Timer(max(0.0, self._longest_s + grace_s - spent_s), check)
        timer.daemon = True
        timer.start()
        future.add_done_callback(lambda _: timer.cancel())

    def _take(self) -> None:
        with self._changing:
            if self._taken >= self.limit + self.queue:
                waiting = f" and {self.queue} wait" if self.queue else ""
                raise Overloaded(f"{self.limit} calls are in work{waiting}, the limit here; send it again later")
            self._taken += 1

    def _release(self) -> None:
        with self._changing:
            self._taken -= 1


class Place:
    """Room for one call."""

    def __init__(
        self, pool: ThreadPoolExecutor, deadline: Deadline, *, on_abandoned: Callable[[Future[Any], float], None]
    ) -> None:
        """`on_abandoned` is given work that goes on beyond the deadline, and how long it has had."""
        self.deadline = deadline
        self._pool = pool
        self._on_abandoned = on_abandoned
        self._begun_s = time.monotonic()
        self._future: Future[Any] | None = None

    def run(self, work: Callable[[], Value]) -> Value:
        """What `work` returns, once. Raises: DeadlineExceeded, or whatever `work` raises."""
        future = self._pool.submit(work)
        self._future = future
        try:
            return future.result(self.deadline.remaining_s())
        except TimeoutError:
            if future.done():  # the work's own
                return future.result()
        if future.cancel():
            raise self.deadline.exceeded("the call had not begun")
        self._on_abandoned(future, time.monotonic() - self._begun_s)
        raise self.deadline.exceeded("the function gave no answer")

    def when_empty(self, act: Callable[[], None]) -> None:
        """Do it as soon as nothing runs in this place: now, or when its work has ended."""
        if self._future is None:
            act()
        else:
            self._future.add_done_callback(lambda _: act())
