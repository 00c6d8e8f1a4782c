"""Whatever fails beside them, saturating neighbours keep their shares, and everything goes on without a new process.

The same faults as in `gshare bench node`, which counts blocks of work on a quiet machine and holds them to 95 %. A
machine that tests is a busy one, so shares are judged here by the time in which neighbours held tokens, and with a
margin: one that had lost its turn would hold none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from gshare.wire import WireError

from bench.figures import BenchError
from bench.node import faults, workers
from bench.node.faults import AT_FAULT, FAULTS, Fault, Scene, scene_on, watch
from bench.node.place import Place

LEAST = 0.6
"""Of its request."""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """On one core; where there is only one, the rogue's work takes time of the neighbours too."""
    cores = sorted(os.sched_getaffinity(0))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "REPLICA_NICENESS", 0)  # else tests that run beside them might starve them
        with scene_on(Place((cores[0], cores[-1]), tmp_path_factory.mktemp("weights"))) as made:
            yield made


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "LEAD_S", 1.0)
    monkeypatch.setattr(faults, "FAULT_S", 2.0)


@pytest.mark.parametrize("fault", [one for one in FAULTS if not one.ends], ids=lambda fault: fault.title)
def test_neighbours_keep_their_shares_and_everybody_goes_on(scene: Scene, fault: Fault) -> None:
    pids = [scene.probes.pid(number) for number in range(len(scene.members))]

    kept = watch(scene, fault)

    assert all(one.by_ledger >= LEAST for one in kept.values()), kept
    assert all(one.by_blocks > 0 for one in kept.values())
    tokens = tokens_taken(scene)
    watch(scene, FAULTS[0])
    assert all(now > then for now, then in zip(tokens_taken(scene), tokens, strict=True)), "by tokens, not by pace"
    assert [scene.probes.pid(number) for number in range(len(scene.members))] == pids


def test_the_token_of_one_that_is_killed_is_its_neighbours_at_once(scene: Scene) -> None:
    (killed,) = [one for one in FAULTS if one.ends]

    (kept,) = watch(scene, killed).values()

    assert kept.by_ledger >= 1.0, "it has the core for itself, more than its request"
    assert not scene.stage.entry(scene.members[AT_FAULT]).connected
    assert not scene.stage.entry(scene.members[AT_FAULT]).holding


def tokens_taken(scene: Scene) -> list[int]:
    try:
        return [scene.stage.entry(member).tokens for member in scene.members]
    except (BenchError, OSError, WireError) as error:
        pytest.fail(f"no scheduler: {error}")
