"""What neighbours keep of their shares while something fails, dies or lies beside them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.figures import BenchError, Bound, Context, Figure, Wish, figure
from bench.node import rogue
from bench.node.place import Place
from bench.node.probes import Counted, Probes
from bench.node.stage import Member, Stage, device_s, stage

REQUESTS = (0.5, 0.4)
ROGUE_REQUEST = 0.1
LEAD_S = 2.0
"""Of a run, before anything fails."""
FAULT_S = 5.0
FROZEN_S = 1.0
AT_FAULT = 1
"""Which of the two probes fails where one does."""
RUNS_A_ROUND = 5
"""A round takes a minute: one for so many runs that are asked for."""
KEPT = Bound(Wish.AT_LEAST, 95.0)
_HOW = (
    f"blocks done in the {FAULT_S:g} s from the fault on, by the device time of a block in the {LEAD_S:g} s before, "
    f"÷ request; the lower of the neighbours; one core, requests {REQUESTS[0]} and {REQUESTS[1]} of saturating probes, "
    f"{ROGUE_REQUEST} of a third member"
)


@dataclass(frozen=True, slots=True)
class Scene:
    """Two saturating probes, a third member that does as it likes, and the core beside theirs."""

    stage: Stage
    members: Sequence[Member]
    probes: Probes
    rogue: Member
    free_core: int


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, and who has to bear it."""

    title: str
    happen: Callable[[Scene], None]
    neighbours: tuple[int, ...] = (0, 1)
    """Places of the probes that are not at fault."""
    ends: bool = False
    """The probe at fault is gone afterwards."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Of its request, what a probe kept."""

    by_blocks: float
    """By what it got done. Other work on the machine takes from that."""
    by_ledger: float
    """By the time in which it held tokens."""


def measure(context: Context, place: Place) -> list[Figure]:
    """Raises: BenchError, ProbeFailed."""
    kept: dict[str, list[float]] = {fault.title: [] for fault in FAULTS}
    rounds = max(1, context.runs // RUNS_A_ROUND)
    for number in range(rounds):
        with scene_on(place) as scene:
            for fault in FAULTS:
                context.say(f"faults, round {number + 1} of {rounds}: {fault.title}")
                kept[fault.title].append(100 * min(one.by_blocks for one in watch(scene, fault).values()))
    return [
        figure(f"share kept, {title}", values, unit="%", definition=_HOW, bound=KEPT) for title, values in kept.items()
    ]


@contextmanager
def scene_on(place: Place) -> Iterator[Scene]:
    """Everything in place for faults, for the length of the block. Raises: BenchError, ProbeFailed."""
    with stage(cores=place.cores[:1], weights_cache=place.weights_cache) as one:
        members = [
            one.join(f"neighbour-{number}", units=(0,), request=request, limit=1.0)
            for number, request in enumerate(REQUESTS)
        ]
        with Probes(members) as probes:
            third = one.join("rogue", units=(0,), request=ROGUE_REQUEST, limit=1.0)
            yield Scene(one, members, probes, third, place.cores[1])


def watch(scene: Scene, fault: Fault) -> dict[int, Kept]:
    """Let it happen; what each neighbour keeps in the time after it. Raises: BenchError, ProbeFailed."""
    start_s = scene.probes.begin(LEAD_S + FAULT_S)
    _sleep_until(start_s)
    at_start = _used_s(scene)
    _sleep_until(start_s + LEAD_S)
    before = _used_s(scene)
    fault.happen(scene)
    _sleep_until(start_s + LEAD_S + FAULT_S)
    after = _used_s(scene)
    counted = scene.probes.ran()
    return {
        number: Kept(
            by_blocks=_share(counted[number], used_before_s=before[number] - at_start[number]) / REQUESTS[number],
            by_ledger=(after[number] - before[number]) / FAULT_S / REQUESTS[number],
        )
        for number in fault.neighbours
    }


def _share(counted: Counted, *, used_before_s: float) -> float:
    """Of the time after the fault: what its blocks would have taken at the pace before.

    Raises: BenchError: there was none before.
    """
    if not used_before_s or not counted.rate_hz(0, LEAD_S):
        raise BenchError(f"a saturating probe did nothing in the {LEAD_S:g} s before the fault: is the core taken?")
    blocks_per_device_s = LEAD_S * counted.rate_hz(0, LEAD_S) / used_before_s
    return counted.rate_hz(LEAD_S, LEAD_S + FAULT_S) / blocks_per_device_s


def _used_s(scene: Scene) -> list[float]:
    return [device_s(scene.stage.entry(member)) for member in scene.members]


def _sleep_until(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.monotonic()))


def _until_s() -> float:
    return time.monotonic() + FAULT_S


def _nothing(_scene: Scene) -> None:
    """For comparison."""


def _scheduler_dies(scene: Scene) -> None:
    scene.stage.kill_scheduler()


def _holder_freezes(scene: Scene) -> None:
    _wait_until_holding(scene)
    os.kill(scene.probes.pid(AT_FAULT), signal.SIGSTOP)
    time.sleep(FROZEN_S)
    os.kill(scene.probes.pid(AT_FAULT), signal.SIGCONT)


def _holder_dies(scene: Scene) -> None:
    _wait_until_holding(scene)
    scene.probes.kill(AT_FAULT)


def _wait_until_holding(scene: Scene) -> None:
    """Asked without pause: it holds a token for some hundredths of a second at a time."""
    until_s = _until_s()
    while not scene.stage.entry(scene.members[AT_FAULT]).holding:
        if time.monotonic() > until_s:
            raise BenchError(f"a saturating probe with request {REQUESTS[AT_FAULT]} got no token within {FAULT_S:g} s")


def _never_returned(scene: Scene) -> None:
    rogue.keep_tokens(scene.rogue, until_s=_until_s())


def _garbage(scene: Scene) -> None:
    rogue.send_garbage(scene.rogue, until_s=_until_s(), core=scene.free_core)


def _connects(scene: Scene) -> None:
    rogue.connect_often(scene.rogue, core=scene.free_core)


FAULTS = (
    Fault("nothing fails", _nothing),
    Fault("the scheduler is killed while tokens are out", _scheduler_dies),
    Fault("the third takes tokens and never returns one", _never_returned),
    Fault("the third sends garbage without pause", _garbage),
    Fault("the third connects 10,000 times", _connects),
    Fault(f"the other freezes for {FROZEN_S:g} s with a token in hand", _holder_freezes, neighbours=(0,)),
    Fault("nothing fails any more, the same processes", _nothing),
    Fault("the other is killed with a token in hand", _holder_dies, neighbours=(0,), ends=True),
)
