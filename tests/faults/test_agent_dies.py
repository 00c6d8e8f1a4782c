"""The node agent is killed under load: its replicas go on by the same tokens, and the next agent takes them over."""

from __future__ import annotations

import time
from typing import Any

from gshare.wire import LiveConfig

from gateway_plugin.ledger import Entry
from tests.agent_process import AgentProcess, agent_process
from tests.stories.on_an_agent import ONE_CORE, called, start, status, wait, wait_ready
from tests.unix_http import call

SPAN_S = 2.0
"""Ten windows."""
REQUESTS = {"a": 0.4, "b": 0.6}
KEPT = 0.6
"""Of its share before, at least; other work on the machine blurs it. One that waited in vain would keep none."""


def test_replicas_keep_their_shares_and_processes_while_their_agent_is_gone() -> None:
    with agent_process(GSHARE_DEVICES=ONE_CORE) as agent:
        for name, request in REQUESTS.items():
            start(agent, name, live=LiveConfig(quota_request=request, quota_limit=1.0))
        wait_ready(agent, *REQUESTS)
        pids = [status(agent, name).pid for name in REQUESTS]
        with called(agent, "a", threads=2), called(agent, "b", threads=2):
            wait(agent, lambda: all(tokens > 1 for tokens in tokens_of(agent).values()))
            before, tokens = shares_over_a_span(agent), tokens_of(agent)

            agent.kill()
            alone = shares_over_a_span(agent)
            gating = [turn_of(agent, name)["gating"] for name in REQUESTS]
            agent.begin()
            wait_ready(agent, *REQUESTS)
            wait(agent, lambda: all(now > tokens[name] for name, now in tokens_of(agent).items()))

        assert gating == ["tokens", "tokens"], "the scheduler lives on"
        assert all(alone[name] >= KEPT * before[name] for name in REQUESTS), (before, alone)
        assert [status(agent, name).pid for name in REQUESTS] == pids


def shares_over_a_span(agent: AgentProcess) -> dict[str, float]:
    """What replicas say they used of the device from now on, as a fraction of the time."""
    begun_s, before = time.monotonic(), {name: used_s(agent, name) for name in REQUESTS}
    wait(agent, lambda: time.monotonic() - begun_s >= SPAN_S)
    return {name: (used_s(agent, name) - before[name]) / (time.monotonic() - begun_s) for name in REQUESTS}


def used_s(agent: AgentProcess, name: str) -> float:
    return float(turn_of(agent, name)["used_s"])


def turn_of(agent: AgentProcess, name: str) -> dict[str, Any]:
    """What the replica itself says, past the agent."""
    turn: dict[str, Any] = call(agent.paths.replica_http(name), "/_/status").json()["turn"]
    return turn


def entries(agent: AgentProcess) -> tuple[Entry, ...]:
    (ledger,) = agent.ledgers()
    return ledger.entries


def tokens_of(agent: AgentProcess) -> dict[str, int]:
    return {entry.replica: entry.tokens for entry in entries(agent)}
