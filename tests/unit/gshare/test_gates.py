"""Gate points: which modules get one, and what a pass does there."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from gshare.gates import Calls, Leash, ModuleCall, OutermostGate, SharedTurn, choose_points, install, recorded_calls
from gshare.turn import FreeTurn, Gating, TurnCounts
from torch import nn


def calls(*at_ms: float, modules: list[int] | None = None) -> list[ModuleCall]:
    return [ModuleCall(at / 1000, modules[i] if modules else i) for i, at in enumerate(at_ms)]


def test_points_lie_at_least_a_spacing_apart() -> None:
    assert choose_points(calls(0, 1, 2, 6, 7, 8, 9, 15)) == (3, 7)


def test_a_pass_shorter_than_the_spacing_has_none() -> None:
    assert choose_points(calls(0, 1, 2, 3, 4)) == ()


def test_of_modules_near_the_cut_the_one_called_least_gets_the_point() -> None:
    often, once = 0, 1

    assert choose_points(calls(0, 1, 2, 5, 6, 7, modules=[often, often, often, often, once, often])) == (once,)


def test_a_module_that_is_called_in_each_step_of_a_loop_gets_one_point_for_all_of_them() -> None:
    assert choose_points(calls(*range(0, 100, 2), modules=[7] * 50)) == (7,)


def test_a_recorded_pass_knows_its_modules_and_leaves_no_hook() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))

    with recorded_calls(lambda: None) as recorded:
        model(torch.zeros(1, 2))
    count = len(recorded.calls)
    model(torch.zeros(1, 2))

    assert recorded.modules == [model, model[0], model[1], model[2]]
    assert count == len(recorded.calls) == 4


def test_an_installed_point_is_passed_at_each_call() -> None:
    model, passed = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), []
    recorded = Calls()
    recorded.add(0.0, model)
    recorded.add(0.010, model[1])

    assert install(recorded, lambda: passed.append(1)) == 1
    model(torch.zeros(1, 2))
    model(torch.zeros(1, 2))

    assert passed == [1, 1]


def test_the_host_stays_one_block_ahead_of_a_gpu() -> None:
    story: list[str] = []

    class Event:
        def __init__(self) -> None:
            self.name = str(sum(line.startswith("record") for line in story))

        def record(self) -> None:
            story.append(f"record {self.name}")

        def synchronize(self) -> None:
            story.append(f"wait for {self.name}")

    leash = Leash(Event)
    for _ in range(3):
        leash()

    assert story == ["record 0", "record 1", "wait for 0", "record 2", "wait for 1"]


class CountedTurn(FreeTurn):
    """Counts what is asked of it, and can be over."""

    gating = Gating.NONE

    def __init__(self) -> None:
        super().__init__()
        self.begun = self.ended = 0
        self.is_over = False

    def begin(self) -> None:
        self.begun += 1
        self.is_over = False

    def end(self) -> None:
        self.ended += 1

    def over(self) -> bool:
        return self.is_over

    @property
    def counts(self) -> TurnCounts:
        return TurnCounts()


def test_threads_inside_together_are_one_turn() -> None:
    turn = CountedTurn()
    shared = SharedTurn(turn, lambda: None)

    shared.enter()
    shared.enter()
    shared.leave()
    assert (turn.begun, turn.ended) == (1, 0)
    shared.leave()

    assert (turn.begun, turn.ended) == (1, 1)


def test_once_the_turn_is_over_new_threads_wait_for_the_next() -> None:
    turn = CountedTurn()
    shared = SharedTurn(turn, lambda: None)
    shared.enter()
    turn.is_over = True

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(shared.enter)
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.05)
        shared.leave()
        waiting.result(timeout=30)

    assert (turn.begun, turn.ended) == (2, 1)


def test_only_the_outermost_module_call_takes_the_turn_also_when_it_fails() -> None:
    turn = CountedTurn()
    gate = OutermostGate(SharedTurn(turn, lambda: None))
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    hooks = gate.install()
    try:
        model(torch.zeros(1, 2))
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            model(torch.zeros(1, 3))
        thread = threading.Thread(target=lambda: model(torch.zeros(1, 2)))
        thread.start()
        thread.join(30)
    finally:
        hooks()

    assert (turn.begun, turn.ended) == (3, 3)
