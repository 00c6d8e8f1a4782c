"""A replica's own pace while no scheduler gives it tokens. Pure: the time is an argument."""

from __future__ import annotations


class Pace:
    """Lets device time be used at `rate`, in bursts of up to `rate` × `window_s`; what is used beyond is repaid."""

    def __init__(self, *, rate: float, window_s: float) -> None:
        """Raises: ValueError for a rate outside (0, 1]."""
        if not 0 < rate <= 1:
            raise ValueError(f"rate {rate:g}: above 0, at most 1")
        self.rate = rate
        self._window_s = window_s
        self._level_s = rate * window_s
        self._at_s = 0.0

    def wait_s(self, now_s: float) -> float:
        """How long to wait before the next block may begin; 0: none."""
        self._fill(now_s)
        return 0.0 if self.rate >= 1 or self._level_s > 0 else (1e-4 - self._level_s) / self.rate

    def spent(self, used_s: float, now_s: float) -> None:
        """Device time was used."""
        self._fill(now_s)
        self._level_s -= used_s

    def _fill(self, now_s: float) -> None:
        self._level_s = min(self.rate * self._window_s, self._level_s + self.rate * max(0.0, now_s - self._at_s))
        self._at_s = now_s
