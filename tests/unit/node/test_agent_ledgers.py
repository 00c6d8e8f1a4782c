"""The agent's admin socket answers with the ledgers of all its devices, as they are at that moment."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable

import pytest
from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Return

from gateway_plugin.agent_protocol import AdmitProbe, Admitted
from gateway_plugin.ledger import Entry
from tests.agent_process import PATIENCE_S, AgentProcess, agent_process


def test_each_device_has_a_ledger_as_of_now() -> None:
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores for two devices")
    devices = ",".join(f"cpu:{core}-{core}" for core in cores[:2])
    with agent_process(GSHARE_DEVICES=devices) as agent:
        asked_s = time.monotonic()
        ledgers = agent.ledgers()
        answered_s = time.monotonic()
        assert [ledger.device for ledger in ledgers] == ["cpu:0", "cpu:1"]
        assert all(asked_s <= ledger.at_s <= answered_s for ledger in ledgers)
        assert all(ledger.entries == () for ledger in ledgers)


def test_a_scheduler_that_was_killed_is_told_what_had_been_used_before_anybody_comes_back() -> None:
    with agent_process() as agent:
        channel = agent.connect()
        channel.send(AdmitProbe("cpu:0", (0,), request=0.5, limit=0.5))
        admitted = channel.receive()
        assert isinstance(admitted, Admitted)
        link, _ = TokenLink.open(admitted.socket, admitted.credential, used_s=0.0, timeout_s=PATIENCE_S)
        link.send(Acquire(0.01))
        grant = link.wait_for_grant()
        link.send(Return(grant.token, 0.0))  # the time held counts
        before = _entry(agent, lambda one: one.used_s > 0)
        link.close()

        record = json.loads((agent.paths.processes / "tokens-0.json").read_bytes())
        os.kill(record["process"]["pid"], signal.SIGKILL)

        after = _entry(agent, lambda one: not one.connected and one.tokens == 0)
        assert after.used_s == before.used_s
        channel.close()


def _entry(agent: AgentProcess, accepts: Callable[[Entry], bool]) -> Entry:
    """The only entry of the ledger, once it is like that."""
    until_s = time.monotonic() + PATIENCE_S
    while True:
        found = [one for ledger in agent.ledgers() for one in ledger.entries if accepts(one)]
        if found:
            return found[0]
        assert time.monotonic() < until_s, agent.log()
