"""What a client is owed."""

from __future__ import annotations

import pytest

from gateway_plugin.node.tokens.accounts import CLAIM, DEBT, Account


def account(request: float = 0.5) -> Account:
    return Account(request=request, limit=1.0, window_s=1.0, now_s=0.0)


def test_who_waits_is_owed_one_window_of_its_request_a_window() -> None:
    one = account()
    one.add_waiting(1, 0.0)
    assert one.standing(0.5) == pytest.approx(0.5)
    assert one.standing(100.0) == pytest.approx(CLAIM)


def test_who_wants_nothing_is_owed_nothing_but_pays_off_its_debt() -> None:
    one = account()
    one.start(0.0)
    one.stop(0.1, used_s=0.1, due_s=0.1)
    assert one.standing(0.1) == pytest.approx(-0.1)
    assert one.standing(0.15) == pytest.approx(-0.05)
    assert one.standing(9.0) == 0.0


def test_holding_a_token_idle_builds_no_claim() -> None:
    one = account()
    one.start(0.0)
    one.stop(5.0, used_s=0.1, due_s=5.0)
    assert one.standing(5.0) == 0.0


def test_use_of_what_others_left_makes_no_large_debt() -> None:
    one = account()
    one.block_s = 0.05
    one.start(0.0)
    assert one.standing(10.0) == pytest.approx(-DEBT - 0.1)
    one.stop(10.0, used_s=10.0, due_s=10.0)
    assert one.standing(10.0) == pytest.approx(-DEBT - 0.1)


def test_what_was_run_after_the_stop_is_owed_in_full() -> None:
    one = account()
    one.start(0.0)
    one.stop(3.0, used_s=3.0, due_s=1.0)
    assert one.standing(3.0) == pytest.approx((0.5 * 3.0 - 3.0) / 0.5)


def test_forgiving_takes_a_window_off_claims_and_nothing_off_debts() -> None:
    one = account()
    one.add_waiting(1, 0.0)
    one.forgive(3.0)
    assert one.standing(3.0) == pytest.approx(2.0)
    one.forgive(3.0)
    one.forgive(3.0)
    one.forgive(3.0)
    assert one.standing(3.0) == 0.0


def test_a_claim_stays_within_its_bounds_when_the_request_shrinks() -> None:
    one = account()
    one.add_waiting(1, 0.0)
    one.resize(request=0.1, limit=1.0, now_s=3.0)
    assert one.standing(3.0) == pytest.approx(CLAIM)
