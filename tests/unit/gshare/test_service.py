from __future__ import annotations

import math

import pytest
from gshare.forming import Rules
from gshare.service import batch_rules
from gshare.wire import LiveConfig


def test_the_goal_is_the_objective_and_no_less_than_three_passes() -> None:
    assert batch_rules(LiveConfig(slo_ms=69), warmup_s=0.01).goal_s == 0.069
    assert batch_rules(LiveConfig(slo_ms=69), warmup_s=0.5).goal_s == 1.5


def test_a_share_of_the_time_makes_a_pass_longer_and_the_goal_with_it() -> None:
    assert batch_rules(LiveConfig(slo_ms=69, quota_request=0.25), warmup_s=0.05).goal_s == pytest.approx(0.6)
    assert batch_rules(LiveConfig(slo_ms=5000, quota_request=0.25), warmup_s=0.05).goal_s == 5.0


def test_without_an_objective_nothing_is_late_and_the_delay_is_the_one_that_was_set() -> None:
    live = LiveConfig(max_batch=8, max_batch_delay_ms=50)

    assert batch_rules(live, warmup_s=0.001) == Rules(max_batch=8, max_delay_s=0.05, goal_s=math.inf)
