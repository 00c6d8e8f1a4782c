"""Shorthand for tests that play one scene by hand."""

from __future__ import annotations

from gateway_plugin.node.tokens.rule import Admission, Decision, TokenRule, TokenShare

W = 0.2
BLOCK = 0.01


def exclusive(units: int = 1) -> TokenRule:
    return TokenRule(units=units, admission=Admission.EXCLUSIVE, window_s=W)


def summed(units: int) -> TokenRule:
    return TokenRule(units=units, admission=Admission.SUM, window_s=W)


def share(*units: int, request: float = 0.3, limit: float = 1.0) -> TokenShare:
    return TokenShare(units=units, request=request, limit=limit)


def ask(rule: TokenRule, now_s: float, *clients: str) -> Decision:
    """They ask, in this order, and the rule decides."""
    for client in clients:
        rule.ask(client, now_s, longest_block_s=BLOCK)
    return rule.decide(now_s)


def return_and_ask(rule: TokenRule, now_s: float, client: str, *, used_s: float) -> Decision:
    """It gives its token back, asks at once for the next, and the rule decides."""
    rule.give_back(client, now_s, used_s=used_s)
    return ask(rule, now_s, client)


def granted(decision: Decision) -> list[str]:
    return [grant.client for grant in decision.grants]
