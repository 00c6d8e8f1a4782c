"""`request` is a guarantee: an account of time owed to a client, or to a client and its successor together. Pure.

While somebody of the account waits it gains request × time; use is taken off. Its *standing* is what it is owed, in
windows of its request: 1.0 means request × W seconds.

- A debt is at most `DEBT` windows and one block (more only for what a client ran after it should have stopped): who
  used what others left idle owes nobody for it.
- Without demand a debt is paid off by time, and no claim grows: a claim saved while idle would have to be taken from
  neighbours at their limit, who cannot make up for it.
- Claims grow to `CLAIM` windows at most. In sets that leave no time for the idle moments between partitions of
  different width they grow all together; `forgive`, done to all accounts alike, then keeps the order among them.
"""

from __future__ import annotations

from gateway_plugin.node.tokens.wall import Wall

DEBT = 0.25
CLAIM = 4.0


class Account:
    """One guarantee and one wall, for all members together; at most one of them holds a token."""

    __slots__ = (
        "_as_of_s",
        "_balance_s",
        "_running",
        "block_s",
        "limit",
        "members",
        "request",
        "waiting",
        "wall",
        "window_s",
    )

    def __init__(self, *, request: float, limit: float, window_s: float, now_s: float) -> None:
        self.request = request
        self.limit = limit
        self.window_s = window_s
        self.wall = Wall(limit=limit, window_s=window_s, now_s=now_s)
        self.members = 0
        self.waiting = 0
        """How many members wait; change it by `add_waiting`."""
        self.block_s = 0.0
        """The longest block that a member reported."""
        self._balance_s = 0.0
        self._as_of_s = now_s
        self._running = False

    @property
    def running(self) -> bool:
        """Whether a member holds a token."""
        return self._running

    def resize(self, *, request: float, limit: float, now_s: float) -> None:
        """Other quotas from now on; what is owed stays, within the new bounds."""
        self.wall.resize(limit, now_s)
        if not self._running:
            self._accrue(now_s)
        self.request, self.limit = request, limit
        self._balance_s = max(self._floor_s, min(self._balance_s, CLAIM * self._unit_s))

    def add_waiting(self, count: int, now_s: float) -> None:
        """So many members more (or fewer) wait from now on."""
        if not self._running:
            self._accrue(now_s)
        self.waiting += count

    def start(self, now_s: float) -> float:
        """A member has the token; how long it may run, inf without a wall."""
        self._accrue(now_s)
        self._running = True
        return self.wall.start(now_s)

    def stop(self, now_s: float, *, used_s: float, due_s: float) -> None:
        """The token ends, after `used_s`; what it used beyond `due_s` is owed in full, however much that is."""
        held_s = now_s - self._as_of_s
        earned_s = min(self._balance_s + self.request * held_s - used_s, max(self._balance_s, 0.0))
        excess_s = max(0.0, used_s - due_s)
        self._balance_s = max(earned_s + excess_s, min(self._balance_s, self._floor_s)) - excess_s
        self._as_of_s = now_s
        self._running = False
        self.wall.book(used_s, now_s)

    def forgive(self, now_s: float) -> None:
        """One window less of a claim; a debt stays."""
        if not self._running:
            self._accrue(now_s)
        self._balance_s = min(self._balance_s, max(0.0, self._balance_s - self._unit_s))

    def standing(self, now_s: float) -> float:
        """What it is owed, in windows of its request; below zero: what it owes."""
        since_s = now_s - self._as_of_s
        return (self._run_down_s(since_s) if self._running else self._grown_s(since_s)) / self._unit_s

    @property
    def _unit_s(self) -> float:
        return self.request * self.window_s

    @property
    def _floor_s(self) -> float:
        return -(DEBT * self._unit_s + self.block_s)

    def _run_down_s(self, since_s: float) -> float:
        return max(self._balance_s - (1 - self.request) * since_s, min(self._balance_s, self._floor_s))

    def _grown_s(self, since_s: float) -> float:
        top_s = CLAIM * self._unit_s if self.waiting else 0.0
        return min(self._balance_s + self.request * since_s, max(self._balance_s, top_s))

    def _accrue(self, now_s: float) -> None:
        self._balance_s = self._grown_s(now_s - self._as_of_s)
        self._as_of_s = now_s
