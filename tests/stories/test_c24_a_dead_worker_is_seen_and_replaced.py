"""C24 (MLServer 1431, LitServe PR 532, pytorch/serve 1815): no green health over a dead model, no endless wait."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.machine_under_test import MachineUnderTest
from tests.replica_process import replica
from tests.stories.on_a_machine import ask_replica, deploy_now

SEEN_WITHIN_S = 2.0
FRAGILE = """
import os

def handle(event, context):
    if event.body == b"held":
        open(os.environ["GATE"]).read()
    return str(os.getpid())
"""


@pytest.mark.e2e
def test_requests_in_a_killed_worker_get_503_and_a_new_one_serves(
    one_at_a_time: MachineUnderTest, tmp_path: Path
) -> None:
    machine, gate = one_at_a_time, tmp_path / "gate"
    os.mkfifo(gate)
    deploy_now(machine, "fragile", FRAGILE, env={"GATE": str(gate)})
    machine.wait(lambda: machine.settled("fragile"), "it serves")
    (first,) = machine.view("fragile").replicas
    pid = int(machine.post("fragile").text)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(machine.post, "fragile", b"held")
        machine.wait(lambda: ask_replica(machine, first.id, "/_/ready").status == 429, "the request is inside")
        killed_s = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        answer = held.result()
        seen_after_s = time.monotonic() - killed_s
    with pytest.raises(OSError):
        ask_replica(machine, first.id, "/_/ready")
    machine.wait(lambda: machine.settled("fragile"), "its successor serves")
    after = machine.post("fragile")

    assert answer.status_code == 503
    assert seen_after_s < SEEN_WITHIN_S
    assert after.status_code == 200
    assert int(after.text) != pid
    assert machine.view("fragile").replicas[0].id != first.id


def test_a_process_whose_worker_died_ends_with_an_error_so_that_whoever_started_it_does_so_again() -> None:
    with replica(FRAGILE) as it:
        it.wait_ready()
        os.kill(it.status()["pid"], signal.SIGKILL)

        assert it.wait() == 1
