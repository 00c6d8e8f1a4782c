"""What gates and tokens cost one pass, inside the process that pays for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from gshare.gates import Calls, install
from gshare.handler import Handler
from gshare.passes import Passes
from gshare.turn import Gating, Turn, TurnCounts
from torch import nn

from bench.node.jobs import Weigh, Weighed


class CountedTurn:
    """A turn that counts its gate points."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.points = 0

    @property
    def gating(self) -> Gating:
        return self._turn.gating

    @property
    def reason(self) -> str:
        return self._turn.reason

    @property
    def counts(self) -> TurnCounts:
        return self._turn.counts

    def begin(self) -> None:
        self._turn.begin()

    def point(self) -> None:
        self.points += 1
        self._turn.point()

    def end(self) -> None:
        self._turn.end()

    def idle(self) -> None:
        self._turn.idle()

    def over(self) -> bool:
        return self._turn.over()


def weigh(job: Weigh, passes: Passes, *, twin: Handler[Any, Any], item: Any, turn: CountedTurn) -> Weighed:
    """`twin` is the same model again, without gates."""

    def gated() -> None:
        passes([item])
        turn.idle()

    def free() -> None:
        with torch.inference_mode():
            list(twin.forward([item]))

    free()  # warms up
    before = turn.points
    pairs = [(_timed(gated), _timed(free)) for _ in range(job.pairs)]
    points = turn.points - before
    return Weighed(
        turn_s=_per_call(lambda: _turn_taken(turn), job.calls),
        point_s=_point_s(turn, job.calls),
        points=points / job.pairs,
        gated_s=tuple(gated_s for gated_s, _ in pairs),
        free_s=tuple(free_s for _, free_s in pairs),
    )


def _turn_taken(turn: Turn) -> None:
    turn.begin()
    turn.end()
    turn.idle()


def _point_s(turn: Turn, calls: int) -> float:
    """A module with a gate point in it, less the same module without; for a turn that is not over."""
    plain, gated, item = nn.Identity(), nn.Identity(), torch.zeros(1)
    recorded = Calls()
    recorded.add(1.0, gated)
    install(recorded, turn.point)
    turn.begin()
    try:
        return _per_call(lambda: gated(item), calls) - _per_call(lambda: plain(item), calls)
    finally:
        turn.end()
        turn.idle()


def _per_call(call: Callable[[], object], calls: int) -> float:
    return _timed(lambda: _repeat(call, calls)) / calls


def _repeat(call: Callable[[], object], times: int) -> None:
    for _ in range(times):
        call()


def _timed(run: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    run()
    return time.perf_counter() - started_s
