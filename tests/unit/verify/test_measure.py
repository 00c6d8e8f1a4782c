"""Measuring through a real agent: probes that share a core, then two on cores of their own, side by side."""

from __future__ import annotations

import os

import pytest

from gateway_plugin.verify.agent_link import AgentLink
from gateway_plugin.verify.figures import Verdict
from gateway_plugin.verify.measure import Plan, verify
from tests.agent_process import agent_process


def test_where_there_are_two_cores_probes_on_each_run_side_by_side() -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    said: list[str] = []
    with agent_process() as agent, AgentLink(agent.paths.agent_socket) as link:
        report = verify(link, Plan(seconds=1.0), said.append)
        left = [entry for ledger in agent.ledgers() for entry in ledger.entries]
    beside = [finding for finding in report.findings if "beside another" in finding.what]
    assert [finding.what for finding in beside] == [f"probe on core {core} beside another" for core in cores[:2]]
    for finding in beside:  # one after the other would be half of it
        assert finding.measured > 0.6 or finding.verdict is Verdict.UNCLEAR
    assert report.notes == ()
    assert report.conditions.device == "cpu:0" and report.conditions.others == 0.0
    assert said[-1] == "two probes side by side, on units of their own"
    assert len(left) == 4, "probes end with their connection, not before"
