"""C25 (triton 6939, 7588): while a replica stops, whoever still asks gets a real answer or a 503, never 400 or 404."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.replica_process import replica

MODEL = """
import os
import torch
from gshare.handler import Handler

class Held(Handler):
    def load(self, context):
        self.model = context.build(lambda: torch.nn.Linear(1, 1))
    def example(self): return [1.0]
    def decode(self, request):
        if request.path == "/held":
            os.write(1, b"held\\n")
            open(os.environ["GATE"]).read()
        return request.json(list[float])
    def forward(self, items): return self.model(torch.tensor(items))
    def encode(self, output, request): return {"y": output}
"""
CALLS = 20


def test_everyone_who_comes_to_a_stopping_replica_gets_a_real_answer(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with replica(MODEL, {"GATE": str(gate)}) as it, ThreadPoolExecutor(1) as pool:
        it.wait_ready()
        held = pool.submit(it.call, "/held", "[1]")
        it.wait_for_log("held")
        it.terminate()
        it.wait_for_log("draining")
        during = [it.call("/", "[1]") for _ in range(CALLS)]
        bad = it.call("/", "no number")
        protocol = it.call("/v2/health/ready")
        gate.open("w").close()
        code = it.wait()

    assert [answer.status for answer in during] == [200] * CALLS
    assert {answer.header("Connection") for answer in during} == {"close"}
    assert bad.status == 400, "its own fault, and not because the replica stops"
    assert protocol.status == 503
    assert held.result().status == 200
    assert code == 0


def test_whoever_comes_too_early_gets_503_and_when_to_come_again(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    loading = MODEL.replace(
        "def load(self, context):", "def load(self, context):\n        open(os.environ['GATE']).read()"
    )
    with replica(loading, {"GATE": str(gate)}) as it:
        it.wait_for_log("unmanaged")
        early = [it.call(path, body) for path, body in (("/", "[1]"), ("/v2/models/tested/infer", "{}"))]
        gate.open("w").close()
        it.wait_ready()

    assert [answer.status for answer in early] == [503, 503]
    assert {answer.header("Retry-After") for answer in early} == {"1"}
