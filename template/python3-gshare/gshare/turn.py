"""Whose turn it is on the device: what the thread that computes asks, and what it says of itself.

It calls `begin` before a pass, `point` at gate points inside it, `end` after it and `idle` when there is nothing to do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

BLOCK_MEMORY = 0.95
"""A longer block is remembered that much of itself from pass to pass."""


class Gating(StrEnum):
    """What holds a replica to its time quota."""

    TOKENS = "tokens"
    PACED = "self-paced"
    """The scheduler is away: it keeps itself to its request."""
    NONE = "none"
    """No scheduler was named at the start."""


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """Totals since the process started."""

    used_s: float = 0.0
    """Device time, as this replica measured it."""
    waited_s: float = 0.0
    """Time with work at hand and no token."""
    tokens: int = 0
    longest_block_s: float = 0.0
    """Of late, from one gate point to the next."""


class Turn(Protocol):
    """What the computing thread asks for its turn."""

    @property
    def gating(self) -> Gating: ...
    @property
    def reason(self) -> str: ...
    @property
    def counts(self) -> TurnCounts: ...
    def begin(self) -> None:
        """Wait for the turn; from here on the device is used."""

    def point(self) -> None:
        """Here a pass may be interrupted: give the turn up if it is over, and wait for the next."""

    def end(self) -> None:
        """The device's work is done."""

    def idle(self) -> None:
        """There is nothing more to do for now."""

    def over(self) -> bool:
        """Whether the turn has ended, so that `point` would wait."""


class TurnClock:
    """Counts the time between `start` and `stop`, and the longest block in it. Times are those of one clock."""

    def __init__(self) -> None:
        self.running = False
        self.total_s = 0.0
        self._longest_s = self._longest_in_pass_s = 0.0
        self._since_s = self._block_since_s = 0.0
        self._unreported_s = 0.0

    def start(self, now_s: float) -> None:
        self.running = True
        self._since_s = self._block_since_s = now_s

    @property
    def longest_block_s(self) -> float:
        """Of the passes of late: the blocks of one pass differ, and each pass has them all again."""
        return max(self._longest_s, self._longest_in_pass_s)

    def block_ended(self, now_s: float) -> None:
        self._longest_in_pass_s = max(self._longest_in_pass_s, now_s - self._block_since_s)
        self._block_since_s = now_s

    def pass_ended(self, now_s: float) -> None:
        self.block_ended(now_s)
        self._longest_s = max(self._longest_in_pass_s, self._longest_s * BLOCK_MEMORY)
        self._longest_in_pass_s = 0.0

    def stop(self, now_s: float) -> float:
        """Seconds since the start."""
        used_s = now_s - self._since_s
        self.running = False
        self.total_s += used_s
        self._unreported_s += used_s
        return used_s

    def take(self) -> float:
        """Seconds since this was last asked."""
        taken_s, self._unreported_s = self._unreported_s, 0.0
        return taken_s


class FreeTurn:
    """No scheduler: it is always this replica's turn. Device time is counted all the same."""

    gating = Gating.NONE
    reason = "GSHARE_TOKEN_SOCKET is not set"

    def __init__(self) -> None:
        self._clock = TurnClock()

    @property
    def counts(self) -> TurnCounts:
        return TurnCounts(used_s=self._clock.total_s, longest_block_s=self._clock.longest_block_s)

    def begin(self) -> None:
        self._clock.start(time.monotonic())

    def point(self) -> None:
        self._clock.block_ended(time.monotonic())

    def end(self) -> None:
        now_s = time.monotonic()
        self._clock.pass_ended(now_s)
        self._clock.stop(now_s)

    def idle(self) -> None:
        """Nothing was taken."""

    def over(self) -> bool:
        return False
