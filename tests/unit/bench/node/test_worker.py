"""A process of the benchmark with a real model, in its turn as a replica is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from bench.node.jobs import Weigh, Weighed
from bench.node.stage import Member, Stage, stage
from bench.node.workers import Worker, run_together, started

CORES = tuple(sorted(os.sched_getaffinity(0))[:1])


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(cores=CORES, weights_cache=tmp_path_factory.mktemp("weights")) as made:
        yield made


@pytest.fixture(scope="module")
def member(device: Stage) -> Member:
    return device.join("worker", units=(0,), request=1.0, limit=1.0)


@pytest.fixture(scope="module")
def worker(member: Member) -> Iterator[Worker]:
    with ExitStack() as stack:
        (made,) = started(stack, [member.config], models=["small"])
        yield made


def test_it_runs_for_as_long_as_it_is_told_with_a_token_in_hand(device: Stage, member: Member, worker: Worker) -> None:
    (passes,) = run_together([worker], "small", run_s=0.3)

    assert passes.between(0.0, 0.3) >= 2
    assert all(ended_s > asked_s for asked_s, ended_s in zip(passes.asked_s, passes.ended_s, strict=True))
    assert passes.asked_s[0] >= passes.start_s
    assert passes.asked_s[-1] < passes.start_s + 0.3
    assert device.entry(member).tokens >= 1


def test_the_cost_of_gates_is_small_beside_a_pass_and_counted_by_parts(worker: Worker) -> None:
    weighed = worker.ask(Weigh("small", calls=2000, pairs=10), Weighed)

    assert len(weighed.gated_s) == len(weighed.free_s) == 10
    assert weighed.points == int(weighed.points) <= 10, (
        "one for each 5 ms that its warm-up took, none on a quiet machine"
    )
    assert 0 < weighed.turn_s < min(weighed.free_s)
    assert 0 < weighed.point_s < min(weighed.free_s)
