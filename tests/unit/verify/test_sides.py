"""Two probes on cores of their own, through a real agent: they run at once, and end with the connection."""

from __future__ import annotations

import os

import pytest

from gateway_plugin.verify.agent_link import AgentLink
from gateway_plugin.verify.figures import Verdict
from gateway_plugin.verify.judge import judge_side_by_side
from gateway_plugin.verify.plan import Plan
from gateway_plugin.verify.sides import measure_sides
from gateway_plugin.verify.team import Team
from tests.agent_process import agent_process


def test_where_there_are_two_cores_a_probe_on_each_runs_beside_the_other() -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    said: list[str] = []
    with agent_process() as agent, AgentLink(agent.paths.agent_socket) as link:
        (device,) = link.devices()
        with Team(link, device) as team:
            sides, others = measure_sides(team, Plan(seconds=1.0), device=device, say=said.append)
        left = agent.ledgers()[0].entries
    assert [side.name for side in sides] == [f"probe on core {core}" for core in cores[:2]]
    assert others == 0.0
    for finding in judge_side_by_side(sides, others=others):  # one after the other would be half of it
        assert finding.measured > 0.6 or finding.verdict is Verdict.UNCLEAR
    assert said == ["two probes side by side, on units of their own"]
    assert sorted(entry.units for entry in left) == [(0,), (1,)], "probes end with their connection, not before"
