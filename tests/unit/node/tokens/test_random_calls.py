"""Calls in any order, sensible or not, are carried out or refused, and tokens that are out always fit the device."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from gateway_plugin.node.tokens.rule import Admission, TokenRule, TokenRuleError, TokenShare
from tests.unit.node.tokens.clients_on_a_rule import W

UNITS = 4
NAMES = ("a", "b", "c", "d", "e", "nobody")
NUMBERS = (0.0, 0.001, 0.01, 0.05, 0.3, 1.0, 7.0, -1.0, math.nan, math.inf)


def any_call(rule: TokenRule, rng: random.Random, now_s: float) -> Callable[[], None]:
    """One call of the rule, whose arguments may make no sense."""
    name, number = rng.choice(NAMES), rng.choice(NUMBERS)
    request, limit = rng.choice(NUMBERS), rng.choice(NUMBERS)
    units = tuple(range(rng.randrange(UNITS), rng.randrange(UNITS + 2)))
    when_s = rng.choice((now_s, now_s, now_s, now_s, now_s - 1, math.nan))
    calls: tuple[Callable[[], None], ...] = (
        lambda: rule.join(name, TokenShare(units, 0.3, rng.choice((0.3, 1.0))), when_s, account=rng.choice(("", "x"))),
        lambda: rule.join(name, TokenShare(units, request, limit), when_s),
        lambda: rule.leave(name, when_s),
        lambda: rule.withdraw(name, when_s),
        lambda: rule.resize(name, request=request, limit=limit, now_s=when_s),
        lambda: rule.ask(name, when_s, longest_block_s=number),
        lambda: rule.give_back(name, when_s, used_s=number),
    )
    return rng.choices(calls, weights=(3, 1, 0.3, 0.3, 1, 5, 5))[0]


def tokens_fit(rule: TokenRule, admission: Admission, now_s: float) -> bool:
    units = [unit for view in rule.views(now_s) if view.holding for unit in view.share.units]
    return len(units) <= UNITS and (admission is Admission.SUM or len(set(units)) == len(units))


def test_tokens_that_are_out_fit_the_device_whatever_is_called() -> None:
    done = refused = granted = 0
    for seed in range(100):
        rng = random.Random(seed)
        admission = rng.choice(list(Admission))
        rule = TokenRule(units=UNITS, admission=admission, window_s=W)
        now_s = 0.0
        for _ in range(150):
            now_s += rng.choice((0.0, 0.001, 0.02, 0.1))
            try:
                any_call(rule, rng, now_s)()
                done += 1
            except TokenRuleError:
                refused += 1
            decision = rule.decide(now_s)
            granted += len(decision.grants)
            assert decision.wake_at_s > now_s, f"seed {seed}"
            assert tokens_fit(rule, admission, now_s), f"seed {seed}"
    assert min(done, refused, granted) > 500
