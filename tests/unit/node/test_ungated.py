"""Whether a replica computes without tokens: the judgement, with seconds that a test makes up."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from gateway_plugin.node.ungated import ALLOWANCE_CORES, BURST_CORE_S, Interval, Standing, judge


def after(seconds: Iterable[tuple[float, float]], *, units: int = 1, start: Standing | None = None) -> Standing:
    """The standing after these seconds: CPU time and token time of each."""
    standing = start or Standing()
    for cpu_s, token_s in seconds:
        standing = judge(standing, Interval(1.0, cpu_s, token_s, units))
    return standing


@pytest.mark.parametrize(
    ("cpu_s", "token_s", "units"),
    [(0.0, 0.0, 1), (0.3, 0.3, 1), (0.45, 0.3, 1), (1.0, 1.0, 1), (1.9, 0.9, 2), (0.6, 0.6, 2)],
)
def test_what_tokens_cover_and_the_handling_of_requests_are_never_marked(
    cpu_s: float, token_s: float, units: int
) -> None:
    assert after([(cpu_s, token_s)] * 3600, units=units) == Standing()


@pytest.mark.parametrize(
    ("cpu_s", "token_s", "units", "within_s"),
    [(1.0, 0.0, 1, 3), (0.9, 0.3, 1, 6), (2.0, 0.5, 2, 3), (0.3, 0.0, 1, 21), (2.0, 1.0, 1, 3)],
)
def test_computing_beyond_tokens_is_marked_and_counted(cpu_s: float, token_s: float, units: int, within_s: int) -> None:
    seconds = [(cpu_s, token_s)] * 60

    assert after(seconds[:within_s], units=units).ungated
    excess = cpu_s - token_s * units - ALLOWANCE_CORES
    assert after(seconds, units=units).ungated_core_s == pytest.approx(60 * excess - BURST_CORE_S)


def test_a_use_that_is_reported_too_low_is_seen() -> None:
    assert after([(1.0, 0.3)] * 5).ungated


def test_a_burst_that_ends_is_neither_marked_nor_counted() -> None:
    assert after([(1.0, 0.0), (1.0, 0.0), *[(0.0, 0.0)] * 10]) == Standing()


def test_the_mark_goes_once_the_replica_has_behaved_for_a_while_and_the_count_stays() -> None:
    marked = after([(1.0, 0.0)] * 10)
    at_once = after([(0.0, 0.0)], start=marked)
    later = after([(0.0, 0.0)] * 11, start=marked)

    assert at_once.ungated
    assert not later.ungated
    assert later.ungated_core_s == marked.ungated_core_s > 0


def test_a_token_that_was_held_idle_and_comes_back_owes_nothing() -> None:
    """Held for 100 s, used for 3: its token time falls by 97 s in one look."""
    assert after([*[(0.03, 1.0)] * 100, (0.1, -97.0), (0.1, 0.1)]) == Standing()


def test_a_long_block_that_is_booked_at_once_does_not_cover_what_comes_later() -> None:
    assert after([(1.0, 30.0), *[(1.0, 0.0)] * 5]).ungated
