"""What the user of `gshare verify` asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ALONE, LEAST_ALONE_S = 0.05, 0.15
"""Of the whole time: how long each runs alone at a time; and at least so long."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the user asked for."""

    device: str = ""
    """Empty: the first one."""
    shares: tuple[float, ...] = (0.3, 0.6)
    seconds: float = 10.0
    """That all probes run together."""
    ungated: frozenset[int] = frozenset()
    """Probes, counted from 1, that compute without asking for tokens."""
    disturb: bool = False
    """Measure even though others use the device."""
    pause_s: float = 0.0
    """Rest of each probe after each block."""

    @property
    def alone_s(self) -> float:
        return max(LEAST_ALONE_S, self.seconds * ALONE)
