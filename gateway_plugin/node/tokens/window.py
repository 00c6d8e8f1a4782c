"""Use in a sliding window: how much, how long a run fits under a cap, and when it will. Pure."""

from __future__ import annotations

from collections import deque
from itertools import islice

ROUNDING_S = 1e-9
"""Two times closer than this are the same; it swallows the rounding of sums of floats."""
_LOOKED_AT = 8
"""Of the oldest runs, how many are followed out of the window; behind a more broken history a run may last less."""


class SlidingWindow:
    """Stretches of use, oldest first and never overlapping; those that have left the window are forgotten."""

    __slots__ = ("_length_s", "_runs", "_total_s")

    def __init__(self, length_s: float) -> None:
        self._length_s = length_s
        self._runs: deque[tuple[float, float]] = deque()
        self._total_s = 0.0

    def book(self, start_s: float, end_s: float) -> None:
        """Use from `start_s` to `end_s`, which is not before what was booked last."""
        self._forget(end_s)
        if end_s <= start_s:
            return
        self._total_s += end_s - start_s
        if self._runs and start_s - self._runs[-1][1] <= ROUNDING_S:
            start_s = self._runs.pop()[0]
        self._runs.append((start_s, end_s))

    def used_s(self, now_s: float) -> float:
        """Use in the window that ends now."""
        self._forget(now_s)
        if not self._runs:
            return 0.0
        return self._total_s - max(0.0, now_s - self._length_s - self._runs[0][0])

    def longest_run_s(self, now_s: float, cap_s: float) -> float:
        """How long one may run from now on so that no window holds more than `cap_s`, which is below its length.

        Old use leaves the window while the run goes on: with a cap of 0.3 windows and use in [0, 0.3], a run that
        starts at 1.0 may last 0.3, although the window is full when it starts.
        """
        room_s = cap_s - self.used_s(now_s)
        horizon_s = mark_s = now_s - self._length_s
        for start_s, end_s in islice(self._runs, _LOOKED_AT):
            gap_s = max(0.0, start_s - mark_s)
            if gap_s > room_s + ROUNDING_S:
                break
            room_s -= gap_s
            mark_s = end_s
        return max(0.0, mark_s - horizon_s + room_s)

    def opens_at_s(self, now_s: float, wanted_s: float, *, cap_s: float) -> float:
        """From when on a run of `wanted_s`, at most `cap_s`, fits; now, or later."""
        self._forget(now_s)
        spare_s = cap_s - wanted_s
        if self._total_s <= spare_s:
            return now_s
        for start_s, end_s in reversed(self._runs):
            if end_s - start_s > spare_s + ROUNDING_S:
                return max(now_s, end_s - max(0.0, spare_s) + self._length_s - wanted_s)
            spare_s -= end_s - start_s
        return now_s

    def _forget(self, now_s: float) -> None:
        runs = self._runs
        while runs and runs[0][1] <= now_s - self._length_s:
            start_s, end_s = runs.popleft()
            self._total_s -= end_s - start_s
        if not runs:
            self._total_s = 0.0
