"""The token rule by example: who gets a token, for how long, and when it has to come back."""

from __future__ import annotations

import math

import pytest

from gateway_plugin.node.tokens.rule import TokenRuleError
from tests.unit.node.tokens.clients_on_a_rule import BLOCK, W, ask, exclusive, granted, return_and_ask, share, summed


def test_who_waits_alone_gets_the_token_at_once_and_keeps_it() -> None:
    rule = exclusive()
    rule.join("a", share(0), 0.0)
    decision = ask(rule, 1.0, "a")
    assert [(grant.client, grant.slice_s, grant.alone) for grant in decision.grants] == [("a", math.inf, True)]
    assert decision.wake_at_s == math.inf


def test_it_is_not_alone_where_another_has_joined_on_one_of_its_units() -> None:
    rule = exclusive(2)
    rule.join("wide", share(0, 1), 0.0)
    rule.join("narrow", share(1), 0.0)
    assert [grant.alone for grant in ask(rule, 0.0, "wide").grants] == [False]


def test_a_slice_is_what_remains_of_the_limit_and_the_deadline_leaves_two_blocks() -> None:
    rule = exclusive()
    rule.join("a", share(0, limit=0.5), 0.0)
    (first,) = ask(rule, 1.0, "a").grants
    (second,) = return_and_ask(rule, 1.06, "a", used_s=0.06).grants
    assert first.slice_s == pytest.approx(0.1)
    assert second.slice_s == pytest.approx(0.04)
    assert second.deadline_s == pytest.approx(1.06 + 0.04 + 2 * BLOCK)


def test_who_used_up_its_limit_waits_until_enough_of_its_use_has_left_the_window() -> None:
    rule = exclusive()
    rule.join("a", share(0, limit=0.5), 0.0)
    ask(rule, 1.0, "a")
    blocked = return_and_ask(rule, 1.1, "a", used_s=0.1)
    assert blocked.grants == ()
    assert blocked.wake_at_s == pytest.approx(1.2)
    (again,) = rule.decide(blocked.wake_at_s).grants
    assert again.slice_s == pytest.approx(0.1)


def test_overrun_is_charged_to_what_comes_next() -> None:
    rule = exclusive()
    rule.join("a", share(0, limit=0.5), 0.0)
    ask(rule, 1.0, "a")
    blocked = return_and_ask(rule, 1.12, "a", used_s=0.12)
    assert blocked.wake_at_s == pytest.approx(1.22)
    assert rule.view("a", 1.12).overuse_s == pytest.approx(0.02)


def test_only_device_time_is_booked_not_the_time_a_token_was_held() -> None:
    rule = exclusive()
    rule.join("a", share(0, limit=0.5), 0.0)
    ask(rule, 1.0, "a")
    (again,) = return_and_ask(rule, 1.08, "a", used_s=0.01).grants
    assert again.slice_s == pytest.approx(0.09)


def test_no_more_use_is_booked_than_the_time_a_token_was_held() -> None:
    rule = exclusive()
    rule.join("a", share(0), 0.0)
    ask(rule, 1.0, "a")
    rule.give_back("a", 1.5, used_s=99.0)
    assert rule.view("a", 1.5).used_s == pytest.approx(0.5)


def test_a_holder_far_past_its_request_is_recalled_at_once_and_told_once() -> None:
    rule = exclusive()
    rule.join("greedy", share(0), 0.0)
    rule.join("meek", share(0), 0.0)
    ask(rule, 0.0, "greedy")
    assert ask(rule, 5.0, "meek").recalls == ("greedy",)
    assert rule.decide(5.001).recalls == ()
    assert granted(return_and_ask(rule, 5.005, "greedy", used_s=5.005)) == ["meek"]


def test_of_two_that_are_owed_the_holder_goes_on_until_the_other_is_owed_much_more() -> None:
    rule = exclusive()
    rule.join("a", share(0, request=0.5), 0.0)
    rule.join("b", share(0, request=0.5), 0.0)
    first = ask(rule, 0.0, "a", "b")
    assert granted(first) == ["a"]
    assert first.recalls == ()
    assert BLOCK < first.wake_at_s < W
    assert rule.decide(first.wake_at_s - 0.001).recalls == ()
    assert rule.decide(first.wake_at_s).recalls == ("a",)


def test_who_is_owed_goes_before_who_is_not_whoever_asked_first() -> None:
    rule = exclusive()
    for client in ("holds", "spent", "owed"):
        rule.join(client, share(0), 0.0)
    ask(rule, 0.0, "spent")
    rule.give_back("spent", 0.1, used_s=0.1)
    ask(rule, 0.1, "holds")
    ask(rule, 0.12, "spent", "owed")
    rule.give_back("holds", 0.15, used_s=0.05)
    assert granted(rule.decide(0.15)) == ["owed"]


def test_of_those_that_are_owed_nothing_who_used_least_goes_first() -> None:
    rule = exclusive()
    for client in ("much", "holds", "little"):
        rule.join(client, share(0, request=0.2), 0.0)
    ask(rule, 0.0, "much")
    rule.give_back("much", 0.08, used_s=0.08)
    ask(rule, 0.08, "little")
    rule.give_back("little", 0.1, used_s=0.02)
    ask(rule, 0.1, "holds")
    ask(rule, 0.1, "much", "little")
    rule.give_back("holds", 0.11, used_s=0.01)
    assert granted(rule.decide(0.11)) == ["little"]


def test_equal_claims_go_in_the_order_of_joining() -> None:
    rule = exclusive()
    for client in ("z", "m", "a"):
        rule.join(client, share(0), 0.0)
    assert granted(ask(rule, 1.0, "a", "m", "z")) == ["z"]


def test_what_is_left_over_is_given_away() -> None:
    rule = exclusive(2)
    rule.join("a", share(0), 0.0)
    rule.join("b", share(1), 0.0)
    rule.join("wide", share(0, 1), 0.0)
    assert granted(ask(rule, 0.0, "a", "b")) == ["a", "b"]


def test_a_token_that_does_not_come_back_is_taken_away_at_deadline_and_grace() -> None:
    rule = exclusive()
    rule.join("hangs", share(0), 0.0)
    rule.join("waits", share(0), 0.0)
    ask(rule, 0.0, "hangs")
    recalled = ask(rule, 1.0, "waits")
    assert recalled.wake_at_s == pytest.approx(1.0 + 2 * BLOCK + W / 2)
    assert rule.decide(recalled.wake_at_s - 0.001).lost == ()
    decision = rule.decide(recalled.wake_at_s)
    assert decision.lost == ("hangs",)
    assert granted(decision) == ["waits"]
    assert rule.view("hangs", recalled.wake_at_s).lost == 1


def test_who_leaves_or_withdraws_with_a_token_in_hand_has_used_it_all_along() -> None:
    rule = exclusive()
    rule.join("goes", share(0), 0.0)
    rule.join("waits", share(0), 0.0)
    ask(rule, 0.0, "goes")
    ask(rule, 0.01, "waits")
    rule.withdraw("goes", 0.03)
    assert rule.view("goes", 0.03).used_s == pytest.approx(0.03)
    assert granted(rule.decide(0.03)) == ["waits"]
    rule.leave("waits", 0.04)
    assert [view.client for view in rule.views(0.04)] == ["goes"]
    assert granted(ask(rule, 0.04, "goes")) == ["goes"]


def test_a_lower_limit_recalls_what_is_out_and_holds_from_then_on() -> None:
    rule = exclusive()
    rule.join("a", share(0, request=0.2, limit=1.0), 0.0)
    ask(rule, 0.0, "a")
    rule.resize("a", request=0.2, limit=0.2, now_s=1.0)
    assert rule.decide(1.0).recalls == ("a",)
    assert return_and_ask(rule, 1.005, "a", used_s=1.005).grants == ()


def test_a_higher_limit_opens_the_wall_at_once() -> None:
    rule = exclusive()
    rule.join("a", share(0, request=0.2, limit=0.2), 0.0)
    ask(rule, 1.0, "a")
    assert return_and_ask(rule, 1.04, "a", used_s=0.04).grants == ()
    rule.resize("a", request=0.2, limit=1.0, now_s=1.05)
    assert granted(rule.decide(1.05)) == ["a"]
    assert rule.share_of("a") == share(0, request=0.2, limit=1.0)


def test_a_replacement_and_its_predecessor_have_one_quota_and_one_token_in_turns() -> None:
    rule = summed(4)
    rule.join("old", share(0, 1, request=0.5), 0.0, account="function")
    rule.join("new", share(0, 1, request=0.5), 0.0, account="function")
    first = ask(rule, 0.0, "old", "new")
    assert granted(first) == ["old"]
    assert first.wake_at_s == pytest.approx(0.5 * W)
    assert rule.decide(first.wake_at_s).recalls == ("old",)
    assert granted(return_and_ask(rule, 0.105, "old", used_s=0.105)) == ["new"]
    assert rule.view("new", 0.105).window_use_s == pytest.approx(0.105)


def test_asking_again_while_waiting_changes_only_the_block() -> None:
    rule = exclusive()
    rule.join("holds", share(0), 0.0)
    rule.join("waits", share(0), 0.0)
    ask(rule, 0.0, "holds")
    ask(rule, 0.01, "waits")
    ask(rule, 0.02, "waits")
    assert rule.view("waits", 0.03).waiting_s == pytest.approx(0.02)


def test_the_same_events_give_the_same_decisions() -> None:
    def play() -> list[object]:
        rule = summed(8)
        for number in range(8):
            rule.join(f"c{number}", share(number, (number + 1) % 8), 0.0)
        said: list[object] = [ask(rule, 0.0, *(f"c{number}" for number in range(8)))]
        said += [rule.decide(step * 0.013) for step in range(1, 40)]
        return said

    assert play() == play()


def test_nonsense_is_refused_and_changes_nothing() -> None:
    rule = exclusive()
    rule.join("a", share(0), 1.0)
    with pytest.raises(TokenRuleError, match="units 0 to 0"):
        rule.join("b", share(1), 1.0)
    with pytest.raises(TokenRuleError, match="none twice"):
        rule.join("b", share(0, 0), 1.0)
    with pytest.raises(TokenRuleError, match="joined already"):
        rule.join("a", share(0), 1.0)
    with pytest.raises(TokenRuleError, match="needs 0 < request <= limit <= 1"):
        rule.join("b", share(0, request=0.5, limit=0.4), 1.0)
    with pytest.raises(TokenRuleError, match="needs 0 < request <= limit <= 1"):
        rule.resize("a", request=math.nan, limit=1.0, now_s=1.0)
    with pytest.raises(TokenRuleError, match="has not joined"):
        rule.ask("b", 1.0, longest_block_s=BLOCK)
    with pytest.raises(TokenRuleError, match="holds no token"):
        rule.give_back("a", 1.0, used_s=0.0)
    with pytest.raises(TokenRuleError, match="longest_block_s nan"):
        rule.ask("a", 1.0, longest_block_s=math.nan)
    with pytest.raises(TokenRuleError, match="time goes on"):
        rule.ask("a", 0.5, longest_block_s=BLOCK)
    assert granted(ask(rule, 1.0, "a")) == ["a"]
    with pytest.raises(TokenRuleError, match="holds a token"):
        rule.ask("a", 1.0, longest_block_s=BLOCK)
    with pytest.raises(TokenRuleError, match=r"used_s -1.0"):
        rule.give_back("a", 1.0, used_s=-1.0)
    assert rule.tokens_out == 1


def test_a_rule_for_no_units_or_no_window_is_refused() -> None:
    with pytest.raises(TokenRuleError, match="at least one unit"):
        exclusive(0)
