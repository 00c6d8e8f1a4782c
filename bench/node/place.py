"""Where the benchmark measures, and how quiet it is there."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from bench.figures import BenchError, Bound, Context, Figure, Wish, figure
from gateway_plugin.paths import Paths

CORES = 2
"""All figures are about one core or two."""
LOOK_S = 1.0
QUIET = Bound(Wish.AT_MOST, 5.0)


@dataclass(frozen=True, slots=True)
class Place:
    """What the parts of the benchmark share."""

    cores: tuple[int, ...]
    weights_cache: Path


def find_place(context: Context) -> Place:
    """The first two cores that this process may use. Raises: BenchError."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < CORES:
        raise BenchError(f"it needs {CORES} cores, this process may use {len(cores)}")
    return Place(tuple(cores[:CORES]), Paths(context.settings.home).weights_cache)


def busy_before(context: Context) -> Figure:
    """How much of the machine others use; said aloud where that is too much."""
    before = Path("/proc/stat").read_text()
    time.sleep(LOOK_S)
    percent = busy_percent(before, Path("/proc/stat").read_text())
    if not QUIET.met(percent):
        context.say(f"warning: {percent:.0f} % of this machine's cores are busy with other work: figures will be off")
    return figure(
        "machine busy before",
        [percent],
        unit="%",
        definition=f"time in which cores were not idle, over {LOOK_S:g} s before anything was started; all cores",
        bound=QUIET,
    )


def busy_percent(before: str, after: str) -> float:
    """Of the time of all cores between two readings of /proc/stat, what was not idle."""
    busy, total = (b - a for a, b in zip(_ticks(before), _ticks(after), strict=True))
    return 100 * busy / total if total else 0.0


def _ticks(stat: str) -> tuple[int, int]:
    """(busy, all) clock ticks of all cores together."""
    times = [int(ticks) for ticks in stat.split(maxsplit=9)[1:9]]  # user nice system idle iowait irq softirq steal
    return sum(times) - times[3] - times[4], sum(times)
