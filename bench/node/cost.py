"""What gates and tokens cost a replica that has the device for itself."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.figures import Bound, Context, Figure, Wish, figure
from bench.node.jobs import Weigh, Weighed
from bench.node.place import Place
from bench.node.rogue import ask_once
from bench.node.stage import stage
from bench.node.workers import Worker, started

CALLS_ALONE = 100_000
CALLS_IN_COMPANY = 5_000
"""Each of them asks the scheduler, so it takes a hundred times as long."""


@dataclass(frozen=True, slots=True)
class Case:
    """One model, and what sharing may cost it."""

    model: str
    title: str
    pairs: int
    """Passes of each side in a run."""
    bound: Bound


CASES = (
    Case("resnet50", "resnet50", 8, Bound(Wish.AT_MOST, 1.0)),
    Case("small", "a 2 ms model", 100, Bound(Wish.AT_MOST, 3.0)),
)


def measure(context: Context, place: Place) -> list[Figure]:
    """Raises: BenchError."""
    with stage(cores=place.cores, weights_cache=place.weights_cache) as one, ExitStack() as stack:
        context.say("cost of gates: loading the models")
        owner = one.join("owner", units=(0,), request=1.0, limit=1.0)
        (worker,) = started(stack, [owner.config], models=[case.model for case in CASES])
        figures = [made for case in CASES for made in _alone(case, _runs(context, worker, case, CALLS_ALONE))]
        one.resize(owner, request=0.5, limit=1.0)
        ask_once(one.join("neighbour", units=(0,), request=0.5, limit=1.0))  # from now on tokens are not kept
        return figures + [_in_company(case, _runs(context, worker, case, CALLS_IN_COMPANY)) for case in CASES]


def _runs(context: Context, worker: Worker, case: Case, calls: int) -> list[Weighed]:
    weighed = []
    for number in range(context.runs):
        context.say(f"cost of gates, {case.title}, run {number + 1} of {context.runs}")
        weighed.append(worker.ask(Weigh(case.model, calls, case.pairs), Weighed))
    return weighed


def _alone(case: Case, runs: Sequence[Weighed]) -> list[Figure]:
    paired = [statistics.median(run.gated_s) / statistics.median(run.free_s) - 1 for run in runs]
    return [
        figure(
            f"{case.title}, a pass",
            [1000 * statistics.median(run.free_s) for run in runs],
            unit="ms",
            definition="median of passes without gates, one core",
        ),
        figure(
            f"{case.title}, a gate point",
            [1e6 * run.point_s for run in runs],
            unit="µs",
            definition=f"one call of a module with a gate point, less one without, {CALLS_ALONE} times each",
        ),
        figure(
            f"{case.title}, a turn",
            [1e6 * run.turn_s for run in runs],
            unit="µs",
            definition=f"begin, end and idle, {CALLS_ALONE} times, alone on the device, so that the token is kept",
        ),
        figure(
            f"{case.title}, gate points",
            [run.points for run in runs],
            unit="a pass",
            definition="gate points met in a pass; chosen from the warm-up run, as in a replica",
        ),
        figure(
            f"{case.title}, cost alone",
            [_cost_percent(run) for run in runs],
            unit="%",
            definition="(a turn + gate points × a gate point) ÷ a pass; a turn includes its messages to the scheduler",
            bound=case.bound,
        ),
        figure(
            f"{case.title}, cost alone, by pairs",
            [100 * ratio for ratio in paired],
            unit="%",
            definition="median pass with gates ÷ median pass of a twin without, one after the other; noise included",
        ),
    ]


def _in_company(case: Case, runs: Sequence[Weighed]) -> Figure:
    return figure(
        f"{case.title}, cost beside an idle neighbour",
        [_cost_percent(run) for run in runs],
        unit="%",
        definition="as cost alone, with a neighbour that could ask: each turn asks for a token and gives it back",
    )


def _cost_percent(run: Weighed) -> float:
    return 100 * (run.turn_s + run.points * run.point_s) / statistics.median(run.free_s)
