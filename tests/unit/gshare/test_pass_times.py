from __future__ import annotations

import pytest
from gshare.pass_times import KEYS_KEPT, PassTimes


def test_before_any_pass_all_are_taken_to_last_what_was_assumed() -> None:
    times = PassTimes()
    times.assume(0.5)

    assert (times.expected_s("a", 1), times.expected_s("b", 8)) == (0.5, 0.5)


def test_the_first_measurement_replaces_the_assumption() -> None:
    times = PassTimes()
    times.assume(9.0)
    times.record("a", 1, seconds=0.1)

    assert (times.expected_s("a", 1), times.expected_s("b", 1)) == (0.1, 0.1)


def test_measurements_of_one_size_are_a_running_mean() -> None:
    times = PassTimes()
    times.record("a", 4, seconds=0.1)
    times.record("a", 4, seconds=0.5)

    assert times.expected_s("a", 4) == pytest.approx(0.2)


def test_a_size_that_never_ran_is_estimated_from_above_by_those_that_did() -> None:
    times = PassTimes()
    times.record("a", 2, seconds=0.1)
    times.record("a", 8, seconds=0.3)

    assert times.expected_s("a", 4) == pytest.approx(0.2), "no worse than two passes of 2"
    assert times.expected_s("a", 7) == pytest.approx(0.3), "no worse than one of 8"
    assert times.expected_s("a", 16) == pytest.approx(0.6)


def test_keys_without_number_do_not_fill_memory() -> None:
    times = PassTimes()
    times.record("kept", 1, seconds=7.0)
    for key in range(2 * KEYS_KEPT):
        times.record(key, 1, seconds=0.1)
        times.record("kept", 1, seconds=7.0)

    assert times.expected_s("kept", 1) == 7.0
    assert times.expected_s(0, 1) != 0.1, "forgotten: the mean over all stands for it"
    assert len(times._known) == KEYS_KEPT


def test_the_spread_is_how_far_passes_of_one_kind_are_off_their_mean() -> None:
    steady, uneven = PassTimes(), PassTimes()
    for number in range(200):
        steady.record("a", 1 + number % 2, seconds=0.1 * (1 + number % 2))
        uneven.record("a", 1, seconds=0.1 if number % 2 else 0.3)

    assert steady.spread == 0.0
    assert 0.3 < uneven.spread < 0.7
