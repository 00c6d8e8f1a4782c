"""The agent's admin socket answers with the ledgers of all its devices, as they are at that moment."""

from __future__ import annotations

import os
import time

import pytest

from tests.agent_process import agent_process


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
