"""What a probe did in a stretch of time: whole blocks, and the times around them. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gshare.turn import Gating, TurnCounts

from gateway_plugin.probe_protocol import Ran, Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One block of work; times are of the monotonic clock."""

    wanted_s: float
    """Since when it was at hand."""
    begun_s: float
    """When its turn had come."""
    ended_s: float
    cpu_s: float
    """CPU time of the whole process by the end of it."""
    counts: TurnCounts
    """The turn's totals by the end of it."""


class Tally:
    """Counts blocks that end from `count_s` to `end_s`. Totals are taken at ends of blocks."""

    def __init__(self, asked: Run, *, counts: TurnCounts, cpu_s: float) -> None:
        """`counts` and `cpu_s`: totals before the first block."""
        self._from_s, self._to_s, self._slice_s = asked.count_s, asked.end_s, asked.slice_s
        self._by_slice = [0] * max(1, math.ceil((self._to_s - self._from_s) / self._slice_s - 1e-9))
        self._first = self._last = Block(
            wanted_s=self._from_s, begun_s=self._from_s, ended_s=self._from_s, cpu_s=cpu_s, counts=counts
        )
        self._wanted_s = self._longest_s = 0.0

    def add(self, block: Block) -> None:
        self._wanted_s += max(0.0, min(block.ended_s, self._to_s) - max(block.wanted_s, self._from_s))
        if block.ended_s <= self._from_s:
            self._first = self._last = block
        elif block.ended_s <= self._to_s:
            self._last = block
            self._longest_s = max(self._longest_s, block.ended_s - block.begun_s)
            self._by_slice[min(len(self._by_slice) - 1, int((block.ended_s - self._from_s) / self._slice_s))] += 1

    def result(self, *, gating: Gating, reason: str) -> Ran:
        first, last = self._first, self._last
        return Ran(
            completed=sum(self._by_slice),
            by_slice=tuple(self._by_slice),
            span_s=last.ended_s - first.ended_s,
            cpu_s=last.cpu_s - first.cpu_s,
            used_s=last.counts.used_s - first.counts.used_s,
            waited_s=last.counts.waited_s - first.counts.waited_s,
            wanted_s=self._wanted_s,
            tokens=last.counts.tokens - first.counts.tokens,
            longest_block_s=self._longest_s,
            gating=gating,
            reason="" if gating is Gating.TOKENS else reason,
        )
