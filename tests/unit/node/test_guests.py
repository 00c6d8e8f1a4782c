"""Probes at the agent: admitted, held to their units, and gone with the connection that brought them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from gshare.token_link import TokenLink
from gshare.wire import Channel

from gateway_plugin.agent_protocol import (
    PROBE_FUNCTION,
    AdmitProbe,
    Admitted,
    Done,
    HoldProbe,
    ListReplicas,
    No,
    Replicas,
    Reply,
)
from gateway_plugin.node.guests import MOST_GUESTS
from tests.agent_process import PATIENCE_S, AgentProcess, agent_process
from tests.token_stand import acquire

FIRST_CORE = min(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def agent() -> Iterator[AgentProcess]:
    with agent_process() as running:
        yield running


@contextmanager
def connection(agent: AgentProcess) -> Iterator[Channel[Reply]]:
    channel = agent.connect()
    try:
        yield channel
    finally:
        channel.close()


def ask(channel: Channel[Reply], request: AdmitProbe | HoldProbe) -> Reply:
    channel.send(request)
    return channel.receive()


def admit(channel: Channel[Reply], *, request: float = 0.5, limit: float = 0.5) -> Admitted:
    answer = ask(channel, AdmitProbe("cpu:0", (0,), request, limit))
    assert isinstance(answer, Admitted), answer
    return answer


def wait_until_nobody_is_left(agent: AgentProcess) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while agent.ledgers()[0].entries:
        assert time.monotonic() < deadline_s, agent.ledgers()
        time.sleep(0.01)


def test_a_probe_gets_tokens_and_is_in_the_ledger_but_is_no_replica(agent: AgentProcess) -> None:
    with connection(agent) as channel:
        admitted = admit(channel, request=0.3, limit=0.6)
        link, _ = TokenLink.open(admitted.socket, admitted.credential, used_s=0.0, timeout_s=PATIENCE_S)
        assert acquire(link).token > 0
        (entry,) = agent.ledgers()[0].entries
        assert (entry.replica, entry.function) == (admitted.id, PROBE_FUNCTION)
        assert (entry.request, entry.limit, entry.units) == (0.3, 0.6, (0,))
        assert entry.holding and entry.held_s > 0
        assert agent.ask(ListReplicas(), Replicas).replicas == ()
        assert admitted.window_s == 0.2 and admitted.degraded == ""
        link.close()
    wait_until_nobody_is_left(agent)
    assert not agent.paths.replica(admitted.id).exists()


def test_probes_end_with_the_connection_that_brought_them_and_with_no_other(agent: AgentProcess) -> None:
    with connection(agent) as stays:
        kept = admit(stays)
        with connection(agent) as goes:
            admit(goes)
            assert len(agent.ledgers()[0].entries) == 2
        deadline_s = time.monotonic() + PATIENCE_S
        while len(agent.ledgers()[0].entries) == 2:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        assert [entry.replica for entry in agent.ledgers()[0].entries] == [kept.id]
    wait_until_nobody_is_left(agent)


def test_its_process_is_held_to_its_cores_at_a_replicas_priority(agent: AgentProcess) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        with connection(agent) as channel:
            admitted = admit(channel)
            assert ask(channel, HoldProbe(admitted.id, child.pid)) == Done()
            assert os.sched_getaffinity(child.pid) == {FIRST_CORE}
            assert os.getpriority(os.PRIO_PROCESS, child.pid) == 10
            gone = ask(channel, HoldProbe("probe-none", child.pid))
            assert gone == No("agent_refused", "no probe probe-none on this connection")
    finally:
        child.communicate(b"\n", timeout=PATIENCE_S)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (AdmitProbe("cpu:7", (0,), 0.5, 0.5), "no device cpu:7 here; there is cpu:0"),
        (AdmitProbe("cpu:0", (99,), 0.5, 0.5), "units (99,): this device has units 0 to"),
        (AdmitProbe("cpu:0", (), 0.5, 0.5), "at least one"),
        (AdmitProbe("cpu:0", (0,), 0.5, 1.5), "needs 0 < request <= limit <= 1"),
        (AdmitProbe("cpu:0", (0,), 0.6, 0.5), "request 0.6, limit 0.5"),
    ],
)
def test_what_cannot_be_admitted_is_refused_with_value_and_rule(
    agent: AgentProcess, asked: AdmitProbe, reason: str
) -> None:
    with connection(agent) as channel:
        answer = ask(channel, asked)
        assert isinstance(answer, No) and reason in answer.reason
        assert agent.ledgers()[0].entries == ()


def test_one_connection_brings_a_limited_number(agent: AgentProcess) -> None:
    with connection(agent) as channel:
        for _ in range(MOST_GUESTS):
            admit(channel, request=0.01, limit=0.01)
        answer = ask(channel, AdmitProbe("cpu:0", (0,), 0.01, 0.01))
        assert isinstance(answer, No) and f"at most {MOST_GUESTS}" in answer.reason
    wait_until_nobody_is_left(agent)


def test_an_agent_that_died_leaves_no_probe_to_its_successor() -> None:
    with agent_process() as agent:
        channel = agent.connect()
        admitted = admit(channel)
        agent.kill()
        channel.close()
        agent.begin()
        wait_until_nobody_is_left(agent)
        assert not agent.paths.replica(admitted.id).exists()
