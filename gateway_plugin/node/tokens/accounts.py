"""`request` is a guarantee: an account of time owed to a client, or to a client and its successor together. Pure.

While somebody of the account waits it gains request × time, up to request × W; use is taken off, down to request × W
and one block below zero (and further for what a client ran after it should have stopped). Without demand a debt is paid
off by time, and no claim is built up: a claim saved while idle would have to be taken from neighbours at their limit,
who cannot make up for it.
"""

from __future__ import annotations

from gateway_plugin.node.tokens.wall import Wall

CAP = 4.0
FLOOR = 0.25


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
        self.block_s = 0.0
        """The longest block of its members."""
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
        self._balance_s = max(self._floor_s, min(self._balance_s, CAP * self._cap_s))

    def add_waiting(self, count: int, now_s: float) -> None:
        """So many members more (or fewer) wait from now on."""
        if not self._running:
            self._accrue(now_s)
        self.waiting += count

    def start(self, now_s: float) -> None:
        """A member has the token."""
        self._accrue(now_s)
        self.wall.refill(now_s)
        self._running = True

    def stop(self, now_s: float, *, used_s: float, due_s: float) -> None:
        """The token ends, after `used_s`; beyond `due_s` of use nothing is forgiven."""
        held_s = now_s - self._as_of_s
        earned_s = min(self._balance_s + self.request * held_s - used_s, max(self._balance_s, 0.0))
        excess_s = max(0.0, used_s - due_s)
        self._balance_s = max(earned_s + excess_s, min(self._balance_s, self._floor_s)) - excess_s
        self._as_of_s = now_s
        self._running = False
        self.wall.book(used_s, now_s)

    def standing(self, now_s: float) -> float:
        """What it is owed as a fraction of request × W; below zero: what it owes."""
        return self._balance_at_s(now_s) / self._cap_s

    def rises_for_s(self, now_s: float) -> float:
        """How long its standing, while it waits, goes up by one a window: until the cap."""
        return max(0.0, CAP * self._cap_s - self._balance_at_s(now_s)) / self.request

    def falls_for_s(self, now_s: float) -> float:
        """How long its standing, while it runs, goes down by (1 − request) ÷ request a window: until the floor."""
        if self.request >= 1:
            return 0.0
        return max(0.0, self._balance_at_s(now_s) - self._floor_s) / (1 - self.request)

    @property
    def _cap_s(self) -> float:
        return self.request * self.window_s

    @property
    def _floor_s(self) -> float:
        return -(FLOOR * self.request * self.window_s + self.block_s)

    def _balance_at_s(self, now_s: float) -> float:
        since_s = now_s - self._as_of_s
        if self._running:
            return max(self._balance_s - (1 - self.request) * since_s, min(self._balance_s, self._floor_s))
        top_s = CAP * self._cap_s if self.waiting else 0.0
        return min(self._balance_s + self.request * since_s, max(self._balance_s, top_s))

    def forgive(self, now_s: float) -> None:
        if not self._running:
            self._accrue(now_s)
        self._balance_s = min(self._balance_s, max(0.0, self._balance_s - self._cap_s))

    def _accrue(self, now_s: float) -> None:
        self._balance_s = self._balance_at_s(now_s)
        self._as_of_s = now_s
