"""Two clients that always have work, on one core: the shares that a user can measure."""

from __future__ import annotations

import math

import pytest

from gateway_plugin.node.tokens.rule import Admission
from tests.unit.node.tokens.clients_on_a_rule import W, share
from tests.unit.node.tokens.figures import Use
from tests.unit.node.tokens.simulation import Behaviour, SimulatedClient, Simulation


def pair(
    small: float, large: float, *, block_s: float = W / 10, seed: int = 0
) -> tuple[Simulation, list[SimulatedClient]]:
    """Two with these quotas, request and limit alike, and blocks up to this long."""
    simulation = Simulation(units=1, admission=Admission.EXCLUSIVE, window_s=W, seed=seed)
    quotas = {"small": small, "large": large}
    return simulation, [
        simulation.add(name, Behaviour(share(0, request=quota, limit=quota), block_s / 4, block_s))
        for name, quota in quotas.items()
    ]


@pytest.mark.parametrize("block_s", [W / 10, W / 40, W / 400])
def test_quotas_of_30_and_60_percent_are_measured_within_two_points_in_any_ten_seconds(block_s: float) -> None:
    for seed in range(5):
        simulation, (small, large) = pair(0.3, 0.6, block_s=block_s, seed=seed)
        simulation.run(30.0)
        for client, quota in ((small, 0.3), (large, 0.6)):
            use = Use(client.runs)
            assert use.least(10.0, from_s=0, to_s=30.0) / 10 >= quota - 0.02
            assert use.most(10.0, from_s=0, to_s=30.0) / 10 <= quota + 0.02
        ratio = Use(large.runs).between(0, 30.0) / Use(small.runs).between(0, 30.0)
        assert ratio == pytest.approx(2.0, rel=0.05)


def test_a_quota_raised_from_20_to_60_percent_is_reached_within_two_seconds() -> None:
    simulation, (small, _) = pair(0.2, 0.3)
    simulation.at(10.0, lambda: simulation.rule.resize("small", request=0.6, limit=0.6, now_s=10.0))
    simulation.run(20.0)
    use = Use(small.runs)
    assert use.between(5.0, 10.0) / 5 == pytest.approx(0.2, abs=0.02)
    assert use.between(10.0, 12.0) / 2 == pytest.approx(0.6, abs=0.06)
    assert use.between(12.0, 20.0) / 8 == pytest.approx(0.6, abs=0.02)


def test_a_quota_lowered_from_60_to_20_percent_is_kept_from_the_next_window_on() -> None:
    simulation, (_, large) = pair(0.3, 0.6)
    simulation.at(10.0, lambda: simulation.rule.resize("large", request=0.2, limit=0.2, now_s=10.0))
    simulation.run(20.0)
    use = Use(large.runs)
    assert use.most(W, from_s=10.0 + W, to_s=20.0) <= 0.2 * W + W / 10 + 1e-6
    assert use.between(12.0, 20.0) / 8 == pytest.approx(0.2, abs=0.02)


def test_what_one_leaves_the_other_gets_up_to_its_limit_and_gives_back_when_asked() -> None:
    simulation = Simulation(units=1, admission=Admission.EXCLUSIVE, window_s=W)
    steady = simulation.add("steady", Behaviour(share(0, request=0.4, limit=0.9), W / 40, W / 20))
    late = simulation.add("late", Behaviour(share(0, request=0.6, limit=1.0), W / 40, W / 20, joins_s=5.0))
    simulation.run(15.0)
    assert Use(steady.runs).between(1.0, 5.0) / 4 == pytest.approx(0.9, abs=0.03)
    assert Use(late.runs).between(5.0, 15.0) / 10 == pytest.approx(0.6, abs=0.03)
    assert late.waits[0][1] - late.waits[0][0] <= W / 20


def test_a_light_client_waits_for_one_block_of_a_neighbour_that_uses_what_is_left_over() -> None:
    simulation = Simulation(units=1, admission=Admission.EXCLUSIVE, window_s=W)
    simulation.add("heavy", Behaviour(share(0, request=0.5), W / 20, W / 20))
    light = Behaviour(share(0, request=0.4), W / 20, W / 20, burst_blocks=1, think_s=W)
    client = simulation.add("light", light)
    simulation.run(20.0)
    waits = sorted(to_s - from_s for from_s, to_s in client.waits)
    assert len(waits) > 50
    assert waits[math.floor(0.95 * len(waits))] <= W / 20 + 1e-6


def test_a_neighbour_of_one_that_hangs_with_every_token_keeps_its_request() -> None:
    simulation = Simulation(units=1, admission=Admission.EXCLUSIVE, window_s=W)
    honest = simulation.add("honest", Behaviour(share(0, request=0.5), W / 40, W / 20))
    for number in range(3):
        hangs = Behaviour(share(0, request=0.1, limit=0.2), W / 40, W / 20, hangs_s=0.0, joins_s=3.0 * number)
        simulation.add(f"hangs{number}", hangs)
    simulation.run(20.0)
    assert [name for name, _ in simulation.lost] == ["hangs0", "hangs1", "hangs2"]
    assert Use(honest.runs).least(50 * W, from_s=0, to_s=20.0) >= 0.95 * 0.5 * 50 * W
