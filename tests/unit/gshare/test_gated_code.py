"""What of an author's code is gated and what is not: the table of docs/writing-a-function.md, case by case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from gshare.gates import OutermostGate, SharedTurn, install, recorded_calls
from gshare.turn import FreeTurn
from torch import nn

INPUT = torch.ones(4)


class Turns(FreeTurn):
    """Counts how often the turn was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = 0

    def begin(self) -> None:
        self.taken += 1
        super().begin()


@pytest.fixture
def turns() -> Iterator[Turns]:
    """Every module call of this process has to pass a gate."""
    turns = Turns()
    remove = OutermostGate(SharedTurn(turns, synchronize=lambda: None)).install()
    yield turns
    remove()


def layers() -> nn.Sequential:
    return nn.Sequential(*(nn.Linear(4, 4) for _ in range(6)))


def points(model: Callable[[torch.Tensor], Any]) -> int:
    """How many gate points are passed in the call after the warm-up, where every module is slow enough to be one."""
    passed = 0

    def point() -> None:
        nonlocal passed
        passed += 1

    with torch.inference_mode():
        with recorded_calls(lambda: None) as calls:
            model(INPUT)
        install(calls, point, spacing_s=0.0)
        model(INPUT)
    return passed


def test_a_model_of_modules_has_gate_points() -> None:
    assert points(layers()) >= 6


@pytest.mark.filterwarnings("ignore:.*torch.jit.*:DeprecationWarning")
def test_a_traced_model_is_one_block() -> None:
    with torch.inference_mode():
        traced = torch.jit.trace(layers(), INPUT)  # type: ignore[no-untyped-call]

    assert points(traced) <= 1, "its outermost call at most"


def test_a_module_call_of_a_plain_function_takes_one_turn(turns: Turns) -> None:
    layers()(INPUT)

    assert turns.taken == 1


@pytest.mark.parametrize(
    "ungated",
    [
        lambda model: model[0].forward(INPUT),
        lambda model: nn.functional.linear(INPUT, model[0].weight),
        lambda model: INPUT @ model[0].weight,
    ],
    ids=["forward called directly", "functional", "operators"],
)
def test_code_that_calls_no_module_takes_none(turns: Turns, ungated: Callable[[nn.Sequential], object]) -> None:
    ungated(layers())

    assert turns.taken == 0
