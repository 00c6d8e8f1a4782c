"""What every benchmark is made of: alternated runs, figures with a stated definition, medians and spread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

from gateway_plugin.settings import Settings

Sample = TypeVar("Sample")


class BenchError(Exception):
    """A benchmark that cannot run here; the text says what is missing and what to do."""


class Wish(StrEnum):
    """Which side of a bound is good."""

    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Bound:
    """What a figure is held to."""

    wish: Wish
    value: float

    def met(self, value: float) -> bool:
        return value <= self.value if self.wish is Wish.AT_MOST else value >= self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One result: the median of several runs, with the smallest and the largest."""

    name: str
    value: float
    unit: str
    definition: str
    """What was measured, and how, so that somebody else can measure the same."""
    low: float
    high: float
    runs: int
    bound: Bound | None = None

    @property
    def met(self) -> bool | None:
        """Whether the median keeps to the bound; None without one."""
        return None if self.bound is None else self.bound.met(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a benchmark is told. It keeps to `runs` and `run_s`, and sends traffic to this machine alone."""

    settings: Settings
    function: str
    """Name of the deployed function to send requests to."""
    runs: int
    """Times each side is measured."""
    run_s: float
    """Longest time of one measurement."""
    max_requests: int
    """Most requests of one measurement."""
    say: Callable[[str], None]
    """Progress, one line at a time."""


class Benchmark(Protocol):
    """Something that `gshare bench NAME` runs."""

    @property
    def name(self) -> str:
        """What it is asked for by."""

    @property
    def description(self) -> str:
        """What it compares, in a line."""

    def run(self, context: Context) -> list[Figure]:
        """Raises: BenchError when it cannot be measured here."""


def alternate(
    sides: Mapping[str, Callable[[], Sample]], *, runs: int, say: Callable[[str], None]
) -> dict[str, list[Sample]]:
    """Measure the sides in turn, `runs` times each, every other round backwards, so that drift hits all alike."""
    samples: dict[str, list[Sample]] = {name: [] for name in sides}
    for number in range(runs):
        names = list(sides) if number % 2 == 0 else list(sides)[::-1]
        for name in names:
            say(f"run {number + 1} of {runs}: {name}")
            samples[name].append(sides[name]())
    return samples


def figure(name: str, values: Sequence[float], *, unit: str, definition: str, bound: Bound | None = None) -> Figure:
    """A figure from the values of several runs."""
    return Figure(
        name=name,
        value=statistics.median(values),
        unit=unit,
        definition=definition,
        low=min(values),
        high=max(values),
        runs=len(values),
        bound=bound,
    )


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]
