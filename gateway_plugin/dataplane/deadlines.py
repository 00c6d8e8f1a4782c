"""Many equal time limits with one timer: no timer is made or cancelled on a request's way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)
_TOLERANCE_S = 0.002
"""The event loop's clock counts milliseconds; an item due within this time is due."""


class Deadlines(Generic[Item]):
    """Calls `expired(item)` once an item has been here for `timeout_s`.

    All limits are equal, so the order of adding is the order of falling due, and only the oldest needs a timer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, timeout_s: float, expired: Callable[[Item], None]) -> None:
        self._loop = loop
        self._timeout_s = timeout_s
        self._expired = expired
        self._due: dict[Item, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, item: Item) -> None:
        """Start the item's time anew."""
        self._due.pop(item, None)
        self._due[item] = self._loop.time() + self._timeout_s
        if self._timer is None:
            self._timer = self._loop.call_later(self._timeout_s, self._sweep)

    def discard(self, item: Item) -> None:
        self._due.pop(item, None)

    def __len__(self) -> int:
        return len(self._due)

    def _sweep(self) -> None:
        self._timer = None
        now = self._loop.time()
        while self._due:
            item, due = next(iter(self._due.items()))
            if due - now > _TOLERANCE_S:
                self._timer = self._timer or self._loop.call_later(due - now, self._sweep)
                return
            del self._due[item]
            self._expired(item)
