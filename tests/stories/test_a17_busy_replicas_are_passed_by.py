"""A17 (of-watchdog PR 143): a replica at its limit says so, and the gateway prefers one with room."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.machine_under_test import MachineUnderTest
from tests.stories.on_a_machine import ask_replica, deploy_now

pytestmark = pytest.mark.e2e
CALLS = 10
HELD = """
import os

def handle(event, context):
    if event.body == b"held":
        open(os.environ["GATE"]).read()
    return str(os.getpid())
"""


def test_while_one_of_two_replicas_is_busy_all_calls_go_to_the_free_one(
    one_at_a_time: MachineUnderTest, tmp_path: Path
) -> None:
    machine, gate = one_at_a_time, tmp_path / "gate"
    os.mkfifo(gate)
    deploy_now(machine, "held", HELD, env={"GATE": str(gate)}, replicas=2)
    machine.wait(lambda: machine.settled("held", replicas=2), "both are ready")
    replicas = [one.id for one in machine.view("held").replicas]
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(machine.post, "held", b"held")
        machine.wait(lambda: 429 in [ask_replica(machine, one, "/_/ready").status for one in replicas], "one is busy")
        ready = {one: ask_replica(machine, one, "/_/ready") for one in replicas}
        answers = [machine.post("held", b"x") for _ in range(CALLS)]
        gate.open("w").close()
        busy_pid = held.result().text

    assert sorted(answer.status for answer in ready.values()) == [200, 429]
    full = next(answer for answer in ready.values() if answer.status == 429)
    assert full.json() == {"state": "ready", "reason": "1 calls are in work, the limit here"}
    assert full.header("Retry-After") == "1"
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers} | {busy_pid}) == 2
    assert busy_pid not in {answer.text for answer in answers}
    machine.wait(
        lambda: [ask_replica(machine, one, "/_/ready").status for one in replicas] == [200, 200], "both have room again"
    )
