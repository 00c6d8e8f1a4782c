"""`limit` is a wall: no window holds more than limit × W, and what a block ran over it is repaid. Pure.

Two measures, and the stricter one holds. The window alone would let every slice end with an overrun, so that the
average passes the limit. A bucket that fills at the rate `limit` and goes below zero by overrun keeps the average, but
alone it would let a full bucket and a window's worth fall into one window.
"""

from __future__ import annotations

import math

from gateway_plugin.node.tokens.window import ROUNDING_S, SlidingWindow

_SHORTEST = 0.01
"""Of a window: there is room when so long a run fits, whatever the blocks,"""
_OF_A_BLOCK = 0.3
"""or this part of the client's longest block (waiting for more would leave units idle in sets that fill the device),"""
_AFTER_THE_WALL = 0.25
"""or, if the wall ended its last run, this part of limit × W: else it would go on in ever smaller pieces, and be kept
waiting by its neighbours' blocks before each."""
_DEPTH = 2.0
"""In limit × W, what the bucket holds: the second one lets a client that was kept from its limit make up for it."""


class Wall:
    """What one account may still run."""

    __slots__ = (
        "_as_of_s",
        "_length_s",
        "_level_s",
        "_limit",
        "_opens_for_s",
        "_opens_s",
        "_slice_s",
        "_spent",
        "_window",
    )

    def __init__(self, *, limit: float, window_s: float, now_s: float) -> None:
        self._limit = limit
        self._length_s = window_s
        self._window = SlidingWindow(window_s)
        self._level_s = limit * window_s
        self._as_of_s = now_s
        self._opens_s = now_s
        self._opens_for_s = math.nan
        """For blocks of which length `_opens_s` was found; nan: it is to be found anew, since something has changed."""
        self._slice_s = math.inf
        self._spent = False
        """The last run used all of its slice."""

    def resize(self, limit: float, now_s: float) -> None:
        """Another limit from now on; the bucket keeps what it holds, as far as that fits."""
        self._refill(now_s)
        self._opens_for_s = math.nan
        self._limit = limit
        self._level_s = min(self._level_s, self._depth_s)

    def used_s(self, now_s: float) -> float:
        """Use in the window that ends now."""
        return self._window.used_s(now_s)

    def opens_at_s(self, now_s: float, longest_block_s: float) -> float:
        """From when on there is room for a run that is worth a token; now, or later."""
        if self._limit >= 1:
            return now_s
        if self._opens_for_s != longest_block_s:
            self._opens_s = self._find_opening_s(now_s, self._wanted_s(longest_block_s))
            self._opens_for_s = longest_block_s
        return max(now_s, self._opens_s)

    def start(self, now_s: float) -> float:
        """A run starts; how long it may last, inf without a wall."""
        self._refill(now_s)
        self._slice_s = math.inf
        if self._limit < 1:
            run_s = self._window.longest_run_s(now_s, self._cap_s)
            self._slice_s = max(0.0, min(run_s, self._level_s / (1 - self._limit)))
        return self._slice_s

    def book(self, used_s: float, now_s: float) -> None:
        """The run ends; its use is taken to be its last part, which leaves the window latest."""
        self._add(self._limit * (now_s - self._as_of_s) - used_s)
        self._as_of_s = now_s
        self._opens_for_s = math.nan
        self._spent = used_s >= self._slice_s - ROUNDING_S
        self._window.book(now_s - used_s, now_s)

    @property
    def _cap_s(self) -> float:
        return self._limit * self._length_s

    @property
    def _depth_s(self) -> float:
        return _DEPTH * self._cap_s

    def _find_opening_s(self, now_s: float, wanted_s: float) -> float:
        self._refill(now_s)
        missing_s = (1 - self._limit) * wanted_s - self._level_s
        filled_at_s = now_s + max(0.0, missing_s) / self._limit
        return max(filled_at_s, self._window.opens_at_s(now_s, wanted_s, cap_s=self._cap_s))

    def _wanted_s(self, longest_block_s: float) -> float:
        least_s = max(_OF_A_BLOCK * longest_block_s, _SHORTEST * self._length_s)
        if self._spent:
            least_s = max(least_s, _AFTER_THE_WALL * self._cap_s)
        return min(least_s, self._cap_s)

    def _refill(self, now_s: float) -> None:
        self._add(self._limit * (now_s - self._as_of_s))
        self._as_of_s = now_s

    def _add(self, gained_s: float) -> None:
        self._level_s = min(self._depth_s, self._level_s + gained_s)
