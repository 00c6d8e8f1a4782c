"""C23 (BentoML 3200, 1530): one knob, the SLO. A batch goes by its deadline; only what cannot make it is refused.

Simulated: a device that takes 50 ms a pass, clients that come at random, no clock but the test's own.
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from gshare.forming import Forming, Pause, Rules, Waiting
from gshare.pass_times import PassTimes

SLO_S = 0.2
PASS_S = 0.05
GENEROUS_DELAY_S = 10.0
"""What the user allows a batch to wait for company: far more than the objective does."""


@dataclass
class Outcome:
    """What became of all requests."""

    waited_s: list[float] = field(default_factory=list)
    """From arrival to the begin of the pass."""
    latency_s: list[float] = field(default_factory=list)
    shed: int = 0
    ended_s: float = 0.0

    @property
    def goodput_hz(self) -> float:
        return sum(one <= SLO_S for one in self.latency_s) / self.ended_s


def simulate(rate_hz: float, *, max_batch: int, seconds: float = 120.0, noise: float = 0.0, seed: int = 0) -> Outcome:
    """Poisson arrivals at one device, as the batcher drives its queue."""
    source = random.Random(seed)
    times = PassTimes()
    times.assume(PASS_S)
    queue: Forming[float] = Forming(Rules(max_batch=max_batch, max_delay_s=GENEROUS_DELAY_S, goal_s=SLO_S), times)
    outcome = Outcome()
    arrivals = deque(_poisson(source, rate_hz, seconds))
    now_s = 0.0

    def arrive_until(moment_s: float) -> None:
        while arrivals and arrivals[0] <= moment_s:
            arrived_s = arrivals.popleft()
            if queue.refusal_s([None], now_s=arrived_s) is None:
                queue.add([Waiting(arrived_s, None, arrived_s)])
            else:
                outcome.shed += 1

    while arrivals or len(queue):
        found = queue.next(now_s)
        if isinstance(found, Pause):
            now_s = min(arrivals[0] if arrivals else math.inf, found.until_s)
            arrive_until(now_s)
            continue
        took_s = PASS_S * (1 + source.uniform(-noise, noise))
        arrive_until(now_s + took_s)
        outcome.waited_s += [now_s - one.arrived_s for one in found]
        now_s += took_s
        outcome.latency_s += [now_s - one.arrived_s for one in found]
        queue.ended(None, len(found), seconds=took_s)
    outcome.ended_s = max(now_s, seconds)
    return outcome


def _poisson(source: random.Random, rate_hz: float, seconds: float) -> Iterator[float]:
    moment_s = source.expovariate(rate_hz)
    while moment_s < seconds:
        yield moment_s
        moment_s += source.expovariate(rate_hz)


def test_under_light_load_no_request_waits_for_a_batch_longer_than_half_the_objective() -> None:
    outcome = simulate(2.0, max_batch=8)

    assert outcome.shed == 0
    assert max(outcome.waited_s) <= 0.1 + PASS_S, "for company, or for the pass in front"
    lone = [waited for waited in outcome.waited_s if waited > 0.0999]
    assert lone, "company is waited for at all"
    assert max(outcome.latency_s) <= SLO_S


@pytest.mark.parametrize("max_batch", [1, 8])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_at_twice_the_capacity_four_fifths_of_it_arrive_in_time(max_batch: int, noise: float) -> None:
    capacity_hz = max_batch / PASS_S

    outcome = simulate(2 * capacity_hz, max_batch=max_batch, seconds=60.0, noise=noise)

    assert outcome.goodput_hz >= 0.8 * capacity_hz
    assert outcome.shed > 0


def test_just_below_capacity_little_is_shed_and_what_is_served_is_in_time() -> None:
    outcome = simulate(0.8 * 8 / PASS_S, max_batch=8)
    served = len(outcome.latency_s)

    assert outcome.shed <= 0.02 * (served + outcome.shed)
    assert sum(one <= SLO_S for one in outcome.latency_s) >= 0.99 * served


def test_shedding_is_decided_at_the_door_and_not_after_a_wait() -> None:
    """A refusal is a function of the moment of arrival: nothing that was let in is thrown out later."""
    outcome = simulate(4 / PASS_S, max_batch=1, seconds=30.0)

    assert len(outcome.waited_s) == len(outcome.latency_s)
    assert outcome.shed > len(outcome.latency_s)
    assert max(outcome.latency_s) <= SLO_S + 1e-9
