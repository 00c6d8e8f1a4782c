"""The token rule by example."""

from __future__ import annotations

import math

import pytest

from gateway_plugin.node.tokens.rule import Admission, TokenRule, TokenRuleError, TokenShare

W = 0.2
BLOCK = 0.01


def exclusive(units: int = 1) -> TokenRule:
    return TokenRule(units=units, admission=Admission.EXCLUSIVE, window_s=W)


def share(*units: int, request: float = 0.3, limit: float = 1.0) -> TokenShare:
    return TokenShare(units=units, request=request, limit=limit)


def test_who_waits_alone_gets_the_token_at_once_and_keeps_it() -> None:
    rule = exclusive()
    rule.join("a", share(0), 0.0)
    rule.ask("a", 1.0, longest_block_s=BLOCK)
    decision = rule.decide(1.0)
    assert [(grant.client, grant.slice_s, grant.alone) for grant in decision.grants] == [("a", math.inf, True)]
    assert decision.wake_at_s == math.inf


def test_a_slice_is_what_remains_of_the_limit() -> None:
    rule = exclusive()
    rule.join("a", share(0, limit=0.5), 0.0)
    rule.ask("a", 1.0, longest_block_s=BLOCK)
    (first,) = rule.decide(1.0).grants
    rule.give_back("a", 1.06, used_s=0.06)
    rule.ask("a", 1.06, longest_block_s=BLOCK)
    (second,) = rule.decide(1.06).grants
    assert first.slice_s == pytest.approx(0.1)
    assert second.slice_s == pytest.approx(0.04)
    assert second.deadline_s == pytest.approx(1.06 + 0.04 + 2 * BLOCK)
    assert not second.alone


def test_who_used_up_its_limit_waits_until_use_leaves_the_window() -> None:
    rule = exclusive()
    rule.join("a", share(0, limit=0.5), 0.0)
    rule.ask("a", 1.0, longest_block_s=BLOCK)
    rule.decide(1.0)
    rule.give_back("a", 1.1, used_s=0.1)
    rule.ask("a", 1.1, longest_block_s=BLOCK)
    blocked = rule.decide(1.1)
    assert blocked.grants == ()
    assert blocked.wake_at_s == pytest.approx(1.2)
    (again,) = rule.decide(blocked.wake_at_s).grants
    assert again.slice_s == pytest.approx(0.1)


def test_a_holder_past_its_request_is_recalled_at_once_and_told_once() -> None:
    rule = exclusive()
    rule.join("greedy", share(0), 0.0)
    rule.join("meek", share(0), 0.0)
    rule.ask("greedy", 0.0, longest_block_s=BLOCK)
    rule.decide(0.0)
    rule.ask("meek", 5.0, longest_block_s=BLOCK)
    assert rule.decide(5.0).recalls == ("greedy",)
    assert rule.decide(5.001).recalls == ()
    rule.give_back("greedy", 5.005, used_s=5.005)
    rule.ask("greedy", 5.005, longest_block_s=BLOCK)
    assert [grant.client for grant in rule.decide(5.005).grants] == ["meek"]


def test_a_token_that_does_not_come_back_is_taken_away_at_deadline_and_grace() -> None:
    rule = exclusive()
    rule.join("hangs", share(0), 0.0)
    rule.join("waits", share(0), 0.0)
    rule.ask("hangs", 0.0, longest_block_s=BLOCK)
    rule.decide(0.0)
    rule.ask("waits", 1.0, longest_block_s=BLOCK)
    wake_at_s = rule.decide(1.0).wake_at_s
    assert wake_at_s == pytest.approx(1.0 + 2 * BLOCK + W / 2)
    decision = rule.decide(wake_at_s)
    assert decision.lost == ("hangs",)
    assert [grant.client for grant in decision.grants] == ["waits"]


def test_nonsense_is_refused_and_changes_nothing() -> None:
    rule = exclusive()
    rule.join("a", share(0), 0.0)
    with pytest.raises(TokenRuleError, match="units 0 to 0"):
        rule.join("b", share(1), 0.0)
    with pytest.raises(TokenRuleError, match="needs 0 < request <= limit <= 1"):
        rule.join("b", share(0, request=0.5, limit=0.4), 0.0)
    with pytest.raises(TokenRuleError, match="has not joined"):
        rule.ask("b", 0.0, longest_block_s=BLOCK)
    with pytest.raises(TokenRuleError, match="holds no token"):
        rule.give_back("a", 0.0, used_s=0.0)
    with pytest.raises(TokenRuleError, match="longest_block_s nan"):
        rule.ask("a", 0.0, longest_block_s=math.nan)
    rule.ask("a", 0.0, longest_block_s=BLOCK)
    assert [grant.client for grant in rule.decide(0.0).grants] == ["a"]
