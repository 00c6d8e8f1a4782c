"""The decision by itself: every time is an argument."""

from __future__ import annotations

import math
from collections.abc import Hashable

import pytest
from gshare.forming import Forming, Pause, Rules, Waiting
from gshare.pass_times import PassTimes


def forming(rules: Rules, *, pass_s: float = 0.05) -> Forming[str]:
    times = PassTimes()
    times.assume(pass_s)
    return Forming(rules, times)


def add(queue: Forming[str], names: str, *, at_s: float, key: Hashable = None) -> None:
    queue.add(Waiting(name, key, at_s) for name in names)


def taken(found: list[Waiting[str]] | Pause) -> str:
    assert isinstance(found, list)
    return "".join(one.item for one in found)


def test_nothing_waits_for_ever() -> None:
    assert forming(Rules()).next(5.0) == Pause(math.inf)


def test_without_a_delay_an_item_goes_at_once_with_whoever_is_there() -> None:
    queue = forming(Rules(max_batch=4))
    add(queue, "ab", at_s=1.0)

    assert taken(queue.next(1.0)) == "ab"
    assert len(queue) == 0


def test_a_full_pass_goes_before_the_delay_is_over() -> None:
    queue = forming(Rules(max_batch=2, max_delay_s=9.0))
    add(queue, "a", at_s=1.0)
    assert queue.next(1.0) == Pause(10.0)
    add(queue, "bc", at_s=2.0)

    assert taken(queue.next(2.0)) == "ab"
    assert queue.next(2.0) == Pause(11.0)


def test_the_goal_ends_the_wait_while_there_is_time_for_two_passes() -> None:
    queue = forming(Rules(max_batch=8, max_delay_s=9.0, goal_s=0.2), pass_s=0.05)
    add(queue, "a", at_s=1.0)

    pause = queue.next(1.0)
    assert isinstance(pause, Pause)
    assert pause.until_s == pytest.approx(1.1)
    assert taken(queue.next(pause.until_s)) == "a"


def test_a_goal_that_cannot_be_met_means_no_wait_at_all() -> None:
    queue = forming(Rules(max_batch=8, max_delay_s=9.0, goal_s=0.2), pass_s=5.0)
    add(queue, "a", at_s=1.0)

    assert taken(queue.next(1.0)) == "a"


def test_the_oldest_item_chooses_the_key_and_others_keep_their_order() -> None:
    queue = forming(Rules(max_batch=3))
    add(queue, "a", at_s=1.0, key="long")
    add(queue, "bc", at_s=1.0, key="short")
    add(queue, "de", at_s=1.0, key="long")

    assert [taken(queue.next(2.0)), taken(queue.next(2.0))] == ["ade", "bc"]


def test_a_request_of_many_items_is_split_and_shares_its_last_pass() -> None:
    queue = forming(Rules(max_batch=4))
    add(queue, "abcdef", at_s=1.0)
    add(queue, "xyz", at_s=1.1)

    assert [taken(queue.next(2.0)) for _ in range(3)] == ["abcd", "efxy", "z"]


def test_when_closing_nobody_waits_for_company() -> None:
    queue = forming(Rules(max_batch=4, max_delay_s=9.0))
    add(queue, "a", at_s=1.0)

    assert taken(queue.next(1.0, closing=True)) == "a"


def test_what_is_removed_is_not_run() -> None:
    queue = forming(Rules(max_batch=4))
    add(queue, "abc", at_s=1.0)

    assert queue.remove(["b", "z"]) == 1
    assert taken(queue.next(1.0)) == "ac"


def test_with_nobody_waiting_nothing_is_refused_however_late_it_will_be() -> None:
    queue = forming(Rules(goal_s=0.001), pass_s=60.0)
    add(queue, "a", at_s=0.0)
    queue.next(0.0)

    assert queue.refusal_s([None], now_s=0.0, deadline_s=0.1) is None


def test_what_cannot_make_the_goal_behind_those_in_front_is_refused_with_how_late_it_would_be() -> None:
    queue = forming(Rules(max_batch=2, goal_s=0.25), pass_s=0.0625)
    add(queue, "ab", at_s=1.0)
    queue.next(1.0)
    add(queue, "cdef", at_s=1.0)

    assert queue.refusal_s([None, None], now_s=1.0) is None, "one runs, two are in front, one of its own: 0.25 s"
    assert queue.refusal_s([None] * 3, now_s=1.0) == pytest.approx(0.0625)
    assert queue.refusal_s([None] * 3, now_s=1.05) == pytest.approx(0.0125), "the running pass is nearly over"


def test_items_of_another_key_need_a_pass_of_their_own() -> None:
    queue = forming(Rules(max_batch=8, goal_s=0.12), pass_s=0.05)
    add(queue, "ab", at_s=1.0, key="x")

    assert queue.refusal_s(["x"], now_s=1.0) is None
    assert queue.refusal_s(["y"], now_s=1.0) is None
    add(queue, "c", at_s=1.0, key="y")
    assert queue.refusal_s(["z"], now_s=1.0) == pytest.approx(0.03)


def test_without_a_goal_only_the_callers_own_deadline_refuses() -> None:
    queue = forming(Rules(), pass_s=1.0)
    add(queue, "abc", at_s=0.0)

    assert queue.refusal_s([None], now_s=0.0) is None
    assert queue.refusal_s([None], now_s=0.0, deadline_s=3.0) == pytest.approx(1.0)


def test_a_pass_that_ended_teaches_how_long_the_next_will_take() -> None:
    queue = forming(Rules(goal_s=1.0), pass_s=9.0)
    add(queue, "ab", at_s=0.0)
    queue.next(0.0)
    queue.ended(None, 1, seconds=0.1)

    assert queue.refusal_s([None], now_s=0.2) is None
    queue.ended(None, 1, seconds=None)
    assert queue.refusal_s([None], now_s=0.2) is None, "a pass that failed teaches nothing"


def test_passes_that_vary_are_given_a_margin() -> None:
    times = PassTimes()
    times.record(None, 1, seconds=0.05)
    times.spread = 0.1
    queue: Forming[str] = Forming(Rules(goal_s=0.21), times)
    add(queue, "abc", at_s=0.0)

    assert queue.refusal_s([None], now_s=0.0) == pytest.approx(0.01), "four passes of 50 ms are taken to last 220 ms"
