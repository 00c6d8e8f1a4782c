"""Use in a sliding window."""

from __future__ import annotations

import pytest

from gateway_plugin.node.tokens.window import SlidingWindow


def window(*runs: tuple[float, float]) -> SlidingWindow:
    one = SlidingWindow(1.0)
    for start_s, end_s in runs:
        one.book(start_s, end_s)
    return one


def test_use_leaves_the_window_bit_by_bit() -> None:
    one = window((0.0, 0.3), (0.5, 0.6))
    used = [one.used_s(now_s) for now_s in (0.6, 1.0, 1.1, 1.3, 1.55, 2.0)]
    assert used == pytest.approx([0.4, 0.4, 0.3, 0.1, 0.05, 0.0])


def test_a_run_may_last_as_long_as_old_use_leaves_while_it_goes_on() -> None:
    assert window((0.0, 0.3)).longest_run_s(1.0, 0.3) == pytest.approx(0.3)
    assert window((0.0, 0.3)).longest_run_s(0.9, 0.3) == pytest.approx(0.0)
    assert window((0.0, 0.3)).longest_run_s(0.9, 0.4) == pytest.approx(0.4)
    assert window((0.0, 0.1), (0.2, 0.3)).longest_run_s(1.0, 0.25) == pytest.approx(0.15)
    assert window().longest_run_s(5.0, 0.25) == pytest.approx(0.25)


def test_it_opens_when_a_run_of_the_wanted_length_fits() -> None:
    one = window((0.0, 0.3))
    assert one.opens_at_s(0.3, 0.3, cap_s=0.3) == pytest.approx(1.0)
    assert one.opens_at_s(0.3, 0.1, cap_s=0.4) == pytest.approx(0.3)
    opens_s = one.opens_at_s(0.3, 0.1, cap_s=0.3)
    assert one.longest_run_s(opens_s, 0.3) >= 0.1 - 1e-9
    assert one.longest_run_s(opens_s - 0.01, 0.3) < 0.1


def test_a_run_without_length_is_none() -> None:
    one = window((0.5, 0.5))
    assert one.used_s(0.5) == 0.0
