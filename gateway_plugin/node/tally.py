"""What a probe did in a stretch of time: whole blocks, and the times around them. Pure."""

from __future__ import annotations

import math

from gshare.turn import Gating, TurnCounts

from gateway_plugin.probe_protocol import Ran, Run


class Tally:
    """Counts blocks that end from `count_s` to `end_s`. Totals of the turn are taken at ends of blocks."""

    def __init__(self, asked: Run, counts: TurnCounts) -> None:
        """`counts`: the turn's totals before the first block."""
        self._from_s, self._to_s, self._slice_s = asked.count_s, asked.end_s, asked.slice_s
        self._by_slice = [0] * max(1, math.ceil((self._to_s - self._from_s) / self._slice_s - 1e-9))
        self._before = self._last = counts
        self._wanted_s = 0.0
        self._opened_s = self._closed_s = self._from_s

    def add(self, wanted_s: float, ended_s: float, counts: TurnCounts) -> None:
        """A block was at hand since `wanted_s` and ended at `ended_s`; the totals are as of then."""
        self._wanted_s += max(0.0, min(ended_s, self._to_s) - max(wanted_s, self._from_s))
        if ended_s <= self._from_s:
            self._before = self._last = counts
            self._opened_s = self._closed_s = ended_s
        elif ended_s <= self._to_s:
            self._last, self._closed_s = counts, ended_s
            self._by_slice[min(len(self._by_slice) - 1, int((ended_s - self._from_s) / self._slice_s))] += 1

    def result(self, *, gating: Gating, reason: str) -> Ran:
        return Ran(
            completed=sum(self._by_slice),
            span_s=self._closed_s - self._opened_s,
            by_slice=tuple(self._by_slice),
            used_s=self._last.used_s - self._before.used_s,
            waited_s=self._last.waited_s - self._before.waited_s,
            wanted_s=self._wanted_s,
            tokens=self._last.tokens - self._before.tokens,
            longest_block_s=self._last.longest_block_s,
            gating=gating,
            reason="" if gating is Gating.TOKENS else reason,
        )
