"""B21: one function is busy for 30 % of its core, another one idles: the ledger gives each its own seconds."""

from __future__ import annotations

import pytest
from gshare.wire import LiveConfig

from gateway_plugin.ledger import Ledger
from tests.agent_process import AgentProcess, agent_process
from tests.stories.on_an_agent import ONE_CORE, called, start, wait, wait_ready
from tests.unix_http import call

BUSY = 0.3
SPAN_S = 3.0
"""What is booked at its edges is a small part of it."""
A, B = "a.openfaas-fn", "b.openfaas-fn"


def test_of_two_on_a_core_the_busy_one_gets_its_seconds_and_the_idle_one_none() -> None:
    with agent_process(GSHARE_DEVICES=ONE_CORE) as agent:
        start(agent, "a", live=LiveConfig(quota_request=BUSY, quota_limit=BUSY))
        start(agent, "b", live=LiveConfig(quota_request=BUSY, quota_limit=1.0))
        wait_ready(agent, "a", "b")
        with called(agent, "a", threads=3):
            grown, span_s = _growth(agent)

    assert grown[A] / span_s == pytest.approx(BUSY, rel=0.1)
    assert grown[B] == 0.0


def test_one_that_is_alone_and_often_idle_gets_what_its_passes_took() -> None:
    with agent_process(GSHARE_DEVICES=ONE_CORE) as agent:
        start(agent, "a", live=LiveConfig(quota_request=BUSY, quota_limit=1.0))
        wait_ready(agent, "a")
        with called(agent, "a", threads=1, pause_s=0.02):
            grown, span_s = _growth(agent)
        replica_s = call(agent.paths.replica_http("a"), "/_/status").json()["turn"]["used_s"]
        wait(agent, lambda: not _ledger(agent).entries[0].holding)
        booked_s = _ledger(agent).functions[A]

    assert 0 < grown[A] < span_s, "booked while it goes on, and less than the token was held"
    assert booked_s == pytest.approx(replica_s, abs=1e-3)


def _growth(agent: AgentProcess) -> tuple[dict[str, float], float]:
    """Device seconds that each function got, and over how many seconds."""
    wait(agent, lambda: _ledger(agent).functions[A] > 0.1)
    before = _ledger(agent)
    wait(agent, lambda: _ledger(agent).at_s - before.at_s >= SPAN_S)
    after = _ledger(agent)
    return {name: after.functions[name] - before.functions[name] for name in before.functions}, after.at_s - before.at_s


def _ledger(agent: AgentProcess) -> Ledger:
    (ledger,) = agent.ledgers()
    return ledger
