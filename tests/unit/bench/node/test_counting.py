"""What the node benchmark makes of what its processes counted."""

from __future__ import annotations

import pytest

from bench.node.place import busy_percent
from bench.node.probes import Counted
from bench.node.quotas import settled_s
from bench.node.workers import Passes


def test_a_pass_that_is_cut_by_the_end_counts_by_its_part() -> None:
    passes = Passes(start_s=100.0, asked_s=(100.0, 100.4, 100.8), ended_s=(100.4, 100.8, 101.2))

    assert passes.between(0.0, 1.0) == pytest.approx(2.5)
    assert passes.between(0.2, 0.4) == pytest.approx(0.5)
    assert passes.between(2.0, 3.0) == 0.0


def test_a_rate_is_that_of_a_part_of_the_run() -> None:
    counted = Counted((1, 1, 1, 5, 5))

    assert counted.blocks == 13
    assert counted.rate_hz(0.0, 0.3) == pytest.approx(10.0)
    assert counted.rate_hz(0.3, 0.5) == pytest.approx(50.0)


def test_a_new_rate_is_reached_with_the_first_half_second_at_it() -> None:
    slow, fast = [2] * 30, [6] * 43

    assert settled_s(Counted((*slow, *fast)), changed_s=3.0, until_s=7.3) == 0.0
    late = Counted((*slow, *[2] * 8, *fast))
    assert settled_s(late, changed_s=3.0, until_s=8.1) == pytest.approx(0.8)


def test_a_rate_that_never_rises_is_no_new_rate() -> None:
    never = Counted((*[2] * 60, *[6] * 20))

    assert settled_s(never, changed_s=3.0, until_s=8.0) >= 2.0


@pytest.mark.parametrize(
    ("after", "percent"),
    [
        ("cpu  100 0 0 900 0 0 0 0 0 0\ncpu0 1 1", 0.0),
        ("cpu  150 0 0 850 0 0 0 0 0 0\ncpu0 1 1", 50.0),
        ("cpu  100 50 50 800 0 0 0 0 0 0\ncpu0 1 1", 100.0),
    ],
)
def test_a_core_is_busy_with_whatever_is_not_idle(after: str, percent: float) -> None:
    before = "cpu  100 0 0 800 0 0 0 0 0 0\ncpu0 1 1"

    assert busy_percent(before, after) == pytest.approx(percent)
