"""What the public token managers of this kind get wrong, as tests that ours does not (each names the defect)."""

from __future__ import annotations

import pytest

from gateway_plugin.node.tokens.rule import Admission
from tests.unit.node.tokens.clients_on_a_rule import BLOCK, W, ask, exclusive, granted, return_and_ask, share, summed
from tests.unit.node.tokens.figures import Use
from tests.unit.node.tokens.simulation import Behaviour, Simulation


def test_one_round_of_grants_never_sums_to_more_than_the_device() -> None:
    """Defect: units were summed before the round, so that all who fitted singly were let in together."""
    rule = summed(100)
    for client in ("a", "b", "c"):
        rule.join(client, share(*range(60)), 0.0)
    assert len(ask(rule, 0.0, "a", "b", "c").grants) == 1


def test_small_clients_do_not_pass_a_large_one_for_ever() -> None:
    """Defect: whoever fitted was let in past a large client, which then never found enough room at once."""
    simulation = Simulation(units=4, admission=Admission.SUM, window_s=W)
    large = simulation.add("large", Behaviour(share(0, 1, 2, 3, request=0.3), BLOCK, BLOCK))
    for unit in range(4):
        simulation.add(f"small{unit}", Behaviour(share(unit, request=0.6), BLOCK / 2, BLOCK))
    simulation.run(50 * W)
    assert Use(large.runs).between(0, 50 * W) >= 0.95 * 0.3 * 50 * W


def test_a_token_returned_early_is_booked_as_used_and_free_at_once() -> None:
    """Defect: a token was booked at its full length, idle or not, and could not be returned."""
    rule = exclusive()
    rule.join("brief", share(0, limit=0.5), 0.0)
    rule.join("waits", share(0), 0.0)
    ask(rule, 0.0, "brief", "waits")
    rule.give_back("brief", 0.002, used_s=0.001)
    assert granted(rule.decide(0.002)) == ["waits"]
    assert rule.view("brief", 0.002).window_use_s == pytest.approx(0.001)


def test_a_slice_never_reaches_past_the_limit() -> None:
    """Defect: a slice was not clipped to what remained, so that use passed the limit by up to one slice a window."""
    rule = exclusive()
    rule.join("a", share(0, request=0.5, limit=0.5), 0.0)
    ask(rule, 0.0, "a")
    (again,) = return_and_ask(rule, 0.09, "a", used_s=0.09).grants
    assert again.slice_s == pytest.approx(0.01)
