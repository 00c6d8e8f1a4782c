"""A4 (of-watchdog 92): a request to a function whose model still loads is held and answered, never 500 or refused."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.machine_under_test import MachineUnderTest
from tests.stories.on_a_machine import ask_replica, deploy_now

pytestmark = pytest.mark.e2e
SLOW_TO_LOAD = """
import os
import torch
from gshare.handler import Handler

class Slow(Handler):
    def load(self, context):
        open(os.environ["GATE"]).read()
        self.warm = False
    def example(self): return 1.0
    def decode(self, request): return request.json(float)
    def forward(self, items):
        self.warm = True
        return [2 * item for item in items]
    def encode(self, output, request): return {"twice": output}
"""


def test_the_first_request_waits_for_load_and_warm_up_and_is_then_answered(
    one_at_a_time: MachineUnderTest, tmp_path: Path
) -> None:
    machine, gate = one_at_a_time, tmp_path / "gate"
    os.mkfifo(gate)
    with ThreadPoolExecutor(1) as pool:
        deploy_now(machine, "slow", SLOW_TO_LOAD, env={"GATE": str(gate)})
        machine.wait(lambda: any(one.reason != "starting" for one in machine.view("slow").replicas), "its process runs")
        first = pool.submit(machine.post, "slow", b"21")
        machine.wait(lambda: [one.reason for one in machine.view("slow").replicas] == ["loading the model"], "it loads")
        (replica,) = machine.view("slow").replicas
        loading = ask_replica(machine, replica.id, "/_/ready")
        assert not first.done(), (first.result().status_code, first.result().text)
        gate.open("w").close()
        answer = first.result()
        ready = ask_replica(machine, replica.id, "/_/ready")

    assert (loading.status, loading.json()) == (503, {"state": "loading", "reason": "loading the model"})
    assert (answer.status_code, answer.json()) == (200, {"twice": 42.0})
    assert ready.status == 200
