"""Two replicas side by side, a core each, against the same two taking turns on both cores, and against racing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from gshare.config import ReplicaConfig

from bench.figures import Bound, Context, Figure, Wish, alternate, figure
from bench.node.place import Place
from bench.node.stage import Stage, stage
from bench.node.workers import Worker, run_together, started

MODELS = ("resnet50", "bert-6")
PAIRS = 7
OVER_TIME = Bound(Wish.AT_LEAST, 1.4)
OVER_RACING = Bound(Wish.AT_LEAST, 0.97)
BOTH = (0, 1)
RUN_S = 2.0
"""Of each side, at most; some ten passes."""
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}
"""Threads sleep while they wait for each other, instead of keeping the other process from its core."""
_SIDES = {
    "space": "two replicas, one core and one thread each, each alone on its core",
    "time": "two replicas, two threads each, that take turns on both cores by tokens (request 0.5 each)",
    "racing": "two processes, two threads each, on both cores at once, without tokens; threads sleep while they wait",
    "racing, as it comes": "the same, with the threads' own way of waiting: they try again and again for a while",
}


@dataclass(frozen=True, slots=True)
class Side:
    """One way to share the device: two workers with all models loaded."""

    workers: Sequence[Worker]

    def rate_hz(self, model: str, run_s: float) -> float:
        """Passes in a second, both workers together."""
        return sum(run.between(0, run_s) for run in run_together(self.workers, model, run_s=run_s)) / run_s


def measure(context: Context, place: Place) -> list[Figure]:
    """Raises: BenchError."""
    pairs = context.runs if context.runs < PAIRS - 2 else max(PAIRS, context.runs)
    with ExitStack() as stack:
        context.say("space and time: loading the models")
        side_by_side, in_turns = (
            stack.enter_context(stage(cores=place.cores, weights_cache=place.weights_cache)) for _ in range(2)
        )
        outside = [in_turns.outsider(units=BOTH)] * 2
        workers = (
            started(stack, _members(side_by_side, units=((0,), (1,)), request=1.0), models=MODELS),
            started(stack, _members(in_turns, units=(BOTH, BOTH), request=0.5), models=MODELS),
            started(stack, outside, models=MODELS, env=PATIENT),
            started(stack, outside, models=MODELS),
        )
        sides = {name: Side(pair) for name, pair in zip(_SIDES, workers, strict=True)}
        return [one for model in MODELS for one in _compared(context, sides, model, pairs=pairs)]


def _members(one: Stage, *, units: Sequence[tuple[int, ...]], request: float) -> list[ReplicaConfig]:
    return [one.join(f"m{number}", units=own, request=request, limit=1.0).config for number, own in enumerate(units)]


def _compared(context: Context, sides: dict[str, Side], model: str, *, pairs: int) -> list[Figure]:
    def once(side: Side) -> Callable[[], float]:
        return lambda: side.rate_hz(model, run_s)

    run_s = min(context.run_s, RUN_S)
    for side in sides.values():
        side.rate_hz(model, run_s / 2)  # warms up
    rates = alternate({f"{model}, {name}": once(side) for name, side in sides.items()}, runs=pairs, say=context.say)
    space, time, racing, _ = rates.values()
    return [
        *(
            figure(f"{model}, {name}", values, unit="passes/s", definition=f"passes ÷ {run_s:g} s: {meaning}")
            for (name, meaning), values in zip(_SIDES.items(), rates.values(), strict=True)
        ),
        _gain(model, "time", [a / b for a, b in zip(space, time, strict=True)], OVER_TIME),
        _gain(model, "racing", [a / b for a, b in zip(space, racing, strict=True)], OVER_RACING),
    ]


def _gain(model: str, other: str, ratios: list[float], bound: Bound) -> Figure:
    return figure(
        f"{model}, space over {other}",
        ratios,
        unit="×",
        definition=f"passes/s of space ÷ those of {other}, run by run of an alternated sequence",
        bound=bound,
    )
