"""What a decision costs: it looks at those who wait and hold, not at all who have joined."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from tests.unit.node.tokens.clients_on_a_rule import ask, share, summed


def calls_of(action: Callable[[], object]) -> int:
    """How many Python functions it calls."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def calls_of_a_grant(joined: int) -> int:
    rule = summed(50)
    for number in range(joined):
        rule.join(f"c{number}", share(number), 0.0)
    return calls_of(lambda: ask(rule, 1.0, "c0"))


def test_a_grant_costs_the_same_with_five_joined_and_with_fifty() -> None:
    assert calls_of_a_grant(50) == calls_of_a_grant(5)
