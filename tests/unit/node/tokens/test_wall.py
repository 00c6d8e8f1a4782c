"""The limit: a window's worth at most, and overrun repaid."""

from __future__ import annotations

import math

import pytest

from gateway_plugin.node.tokens.wall import Wall

BLOCK_S = 0.02


def test_without_a_limit_there_is_no_wall() -> None:
    wall = Wall(limit=1.0, window_s=1.0, now_s=0.0)
    assert wall.start(0.0) == math.inf
    wall.book(5.0, 5.0)
    assert wall.opens_at_s(5.0, BLOCK_S) == 5.0


def test_overrun_in_every_slice_does_not_raise_the_average() -> None:
    wall = Wall(limit=0.3, window_s=1.0, now_s=0.0)
    now_s = used_s = 0.0
    while now_s < 100.0:
        now_s = wall.opens_at_s(now_s, BLOCK_S)
        run_s = wall.start(now_s) + BLOCK_S
        now_s += run_s
        used_s += run_s
        wall.book(run_s, now_s)
        assert wall.used_s(now_s) <= 0.3 + BLOCK_S + 1e-6
    assert 0.29 <= used_s / now_s <= 0.3 + 0.3 / 100 + BLOCK_S / 100


def test_who_was_kept_from_its_limit_may_make_up_for_it_by_overrun_only() -> None:
    wall = Wall(limit=0.3, window_s=1.0, now_s=0.0)
    assert wall.start(10.0) == pytest.approx(0.3)
    wall.book(0.3, 10.3)
    assert wall.opens_at_s(10.3, BLOCK_S) > 10.9


def test_who_was_stopped_by_the_wall_goes_on_when_a_quarter_of_the_limit_fits() -> None:
    wall = Wall(limit=0.4, window_s=1.0, now_s=0.0)
    wall.start(0.0)
    wall.book(0.2, 0.2)
    assert wall.opens_at_s(0.2, BLOCK_S) == 0.2
    wall.start(0.3)
    wall.book(0.2, 0.5)
    opens_s = wall.opens_at_s(0.5, BLOCK_S)
    assert opens_s == pytest.approx(1.0)
    assert wall.start(opens_s) == pytest.approx(0.2)


def test_a_limit_below_one_block_is_kept_by_longer_pauses() -> None:
    wall = Wall(limit=0.05, window_s=1.0, now_s=0.0)
    now_s = used_s = 0.0
    while now_s < 200.0:
        now_s = wall.opens_at_s(now_s, 0.1)
        wall.start(now_s)
        now_s += 0.1
        used_s += 0.1
        wall.book(0.1, now_s)
    assert used_s / now_s == pytest.approx(0.05, rel=0.02)
