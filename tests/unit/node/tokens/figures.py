"""What a record of runs says: least and most use in any window, and how long was waited."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Runs = list[tuple[float, float]]


class Use:
    """Use over time of one client, or of one account."""

    def __init__(self, runs: Runs) -> None:
        self._runs = np.array(sorted(runs), dtype=np.float64).reshape(-1, 2)
        lengths = self._runs[:, 1] - self._runs[:, 0]
        ends = np.cumsum(lengths)
        self._times = self._runs.reshape(-1)
        self._sums = np.column_stack((ends - lengths, ends)).reshape(-1)

    def until(self, times_s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Use from the beginning to each of these times."""
        if not len(self._times):
            return np.zeros_like(times_s)
        return np.interp(times_s, self._times, self._sums)

    def between(self, from_s: float, to_s: float) -> float:
        first, last = self.until(np.array([from_s, to_s]))
        return float(last - first)

    def least(self, length_s: float, *, from_s: float, to_s: float) -> float:
        """Least use in any window of this length within the time given."""
        starts = np.concatenate((self._runs[:, 1], self._runs[:, 0] - length_s, [from_s, to_s - length_s]))
        return float(np.min(self._in_windows(starts, length_s, from_s, to_s)))

    def most(self, length_s: float, *, from_s: float, to_s: float) -> float:
        """Most use in any window of this length within the time given."""
        starts = np.concatenate((self._runs[:, 0], self._runs[:, 1] - length_s, [from_s, to_s - length_s]))
        return float(np.max(self._in_windows(starts, length_s, from_s, to_s)))

    def _in_windows(
        self, starts: NDArray[np.float64], length_s: float, from_s: float, to_s: float
    ) -> NDArray[np.float64]:
        inside = starts[(starts >= from_s) & (starts <= to_s - length_s)]
        return self.until(inside + length_s) - self.until(inside)
