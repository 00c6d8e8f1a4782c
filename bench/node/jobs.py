"""What the benchmark's processes are told and answer, framed as `gshare.wire` has it."""

from __future__ import annotations

from gshare.wire import Message


class Loaded(Message, frozen=True):
    """Worker → benchmark, first of all: its models have run once each."""


class Failed(Message, frozen=True):
    """Worker → benchmark: it cannot do it, and why."""

    reason: str


class Run(Message, frozen=True):
    """Benchmark → worker: one pass after the other, from `start_s` (monotonic clock) for `run_s`; answered by Ran."""

    model: str
    start_s: float
    run_s: float


class Ran(Message, frozen=True):
    """The passes of a run, the last one ending after it."""

    asked_s: tuple[float, ...]
    """When each pass was ready to run, its wait for a token still before it."""
    ended_s: tuple[float, ...]


class Weigh(Message, frozen=True):
    """Benchmark → worker: what gates and tokens add to a model's pass; answered by Weighed."""

    model: str
    calls: int
    """How often each call is made to time it."""
    pairs: int
    """Passes with gates and without, one after the other."""


class Weighed(Message, frozen=True):
    """Times are seconds."""

    turn_s: float
    """Taking the turn for a pass and giving it back, its messages to the scheduler included."""
    point_s: float
    """One gate point inside a pass, its hook included."""
    points: float
    """Gate points met in one pass."""
    gated_s: tuple[float, ...]
    """Passes with all of that."""
    free_s: tuple[float, ...]
    """Passes of the same model without."""


ToWorker = Run | Weigh
FromWorker = Loaded | Failed | Ran | Weighed
