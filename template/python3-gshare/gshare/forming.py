"""Which waiting items make the next pass through the model, and when. Pure: time is an argument, nothing waits here.

One queue, oldest first. The oldest item chooses the key; as many others of its key as fit go with it. A pass begins as
soon as it is full, or when its oldest item has waited as long as it may:

    arrival + min(max_delay, goal − 2 × expected time of the pass)

twice, because the pass itself takes that long and another one may be in front of it. With a goal of 200 ms and passes
of 50 ms nobody waits for company longer than 100 ms. A device that was busy meanwhile takes at once what has gathered.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from gshare.pass_times import PassTimes

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The limits in force."""

    max_batch: int = 1
    """Most items in one pass."""
    max_delay_s: float = 0.0
    """Longest wait for company."""
    goal_s: float = math.inf
    """From arrival to the end of the pass: the latency objective. What cannot make it is refused."""


@dataclass(frozen=True, slots=True)
class Waiting(Generic[Item]):
    """One item in the queue."""

    item: Item
    key: Hashable
    arrived_s: float


@dataclass(frozen=True, slots=True)
class Pause:
    """Nothing to run before this moment, unless something arrives."""

    until_s: float


class Forming(Generic[Item]):
    """The queue in front of one device."""

    def __init__(self, rules: Rules, times: PassTimes) -> None:
        self.rules = rules
        self._times = times
        self._waiting: list[Waiting[Item]] = []
        self._free_at_s = -math.inf
        """When the pass that runs now is expected to end."""

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, items: Iterable[Waiting[Item]]) -> None:
        """At the end of the queue."""
        self._waiting.extend(items)

    def remove(self, items: Iterable[Item]) -> int:
        """Take those out that still wait; how many there were."""
        gone = set(items)
        before = len(self._waiting)
        self._waiting = [one for one in self._waiting if one.item not in gone]
        return before - len(self._waiting)

    def refusal_s(self, keys: Sequence[Hashable], *, now_s: float, deadline_s: float = math.inf) -> float | None:
        """How many seconds too late items that arrive now would be through; None if they are welcome.

        They are if the last of them is expected to be through by the goal and by the deadline of their call. With
        nobody waiting everything is: better late than never.
        """
        if not self._waiting:
            return None
        late_s = self._expected_end_s(keys, now_s) - min(now_s + self.rules.goal_s, deadline_s)
        return late_s if late_s > 0 else None

    def next(self, now_s: float, *, closing: bool = False) -> list[Waiting[Item]] | Pause:
        """The items of the next pass, taken out of the queue, or how long to wait for more."""
        if not self._waiting:
            return Pause(math.inf)
        first = self._waiting[0]
        company = [one for one in self._waiting if one.key == first.key][: self.rules.max_batch]
        flush_at_s = self._flush_at_s(first, len(company))
        if len(company) < self.rules.max_batch and now_s < flush_at_s and not closing:
            return Pause(flush_at_s)
        taken = set(map(id, company))
        self._waiting = [one for one in self._waiting if id(one) not in taken]
        self._free_at_s = now_s + self._times.expected_s(first.key, len(company))
        return company

    def ended(self, key: Hashable, size: int, *, seconds: float | None) -> None:
        """The pass that ran is over; it took that long, None if that says nothing about the next."""
        if seconds is not None:
            self._times.record(key, size, seconds=seconds)
        self._free_at_s = -math.inf

    def _flush_at_s(self, first: Waiting[Item], size: int) -> float:
        slack_s = self.rules.goal_s - 2 * self._times.expected_s(first.key, size)
        return first.arrived_s + max(0.0, min(self.rules.max_delay_s, slack_s))

    def _expected_end_s(self, keys: Sequence[Hashable], now_s: float) -> float:
        """When everything that waits, and items of these keys behind it, would be through, in all likelihood.

        Passes vary: twice their spread is added, as variances add up. Four passes of 50 ms with a spread of 10 % are
        taken to last 220 ms.
        """
        counts = Counter(one.key for one in self._waiting)
        counts.update(keys)
        passes_s = [seconds for key, count in counts.items() for seconds in self._passes_s(key, count)]
        running_s = max(0.0, self._free_at_s - now_s)
        margin_s = 2 * self._times.spread * math.hypot(running_s, *passes_s)
        return now_s + running_s + sum(passes_s) + margin_s

    def _passes_s(self, key: Hashable, count: int) -> list[float]:
        """Expected times of the passes that so many items of a key take."""
        full, rest = divmod(count, self.rules.max_batch)
        passes_s = [self._times.expected_s(key, self.rules.max_batch)] * full
        return [*passes_s, self._times.expected_s(key, rest)] if rest else passes_s
