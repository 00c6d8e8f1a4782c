"""C26 (triton 3786, 6536, 7014, 7420): loading, ready and failed are told apart; a failed one is alive and waits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from gshare.condition import Phase
from safetensors.torch import save_file

from tests.replica_process import FAILED_LINE, READY_LINE, replica
from tests.served_app import loaded_app

MODEL = """
import torch
from gshare.handler import Handler

class Labels(Handler):
    def load(self, context):
        labels = context.model_config({"labels": 3})["labels"]
        self.model = context.build(lambda: torch.nn.Linear(2, labels))
    def example(self): return [0.0, 0.0]
    def decode(self, request): return request.json(list[float])
    def forward(self, items): return self.model(torch.tensor(items))
    def encode(self, output, request): return {"labels": len(output)}
"""
NO_ROOM = MODEL.replace("        labels =", "        NO_ROOM()\n        labels =").replace(
    "class Labels",
    "import errno\n\ndef NO_ROOM(): raise OSError(errno.ENOSPC, 'No space left on device')\n\nclass Labels",
)


def save(folder: Path, *, labels: int = 3) -> Path:
    """Weights as they should be."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"labels": labels}))
    path = folder / "model.safetensors"
    save_file({"weight": torch.ones(labels, 2), "bias": torch.zeros(labels)}, path)
    return path


def missing(folder: Path) -> None:
    save(folder).unlink()


def truncated(folder: Path) -> None:
    path = save(folder)
    path.write_bytes(path.read_bytes()[:-5])


def wrong_class_count(folder: Path) -> None:
    save(folder)
    (folder / "config.json").write_text(json.dumps({"labels": 1000}))


def save_good(folder: Path) -> None:
    save(folder)


@pytest.mark.parametrize(
    ("spoil", "weights", "reason"),
    [
        (missing, "file:m", "needs model.safetensors"),
        (truncated, "file:m", "model.safetensors cannot be read as safetensors"),
        (wrong_class_count, "file:m", "weight is (3, 2), the model has (1000, 2)"),
        (save_good, f"file:m@sha256:{'0' * 64}", f"asked for is sha256:{'0' * 64}"),
        (save_good, "file:other", "file:other: no such file or folder under GSHARE_WEIGHTS_ROOT"),
    ],
)
def test_weights_that_cannot_be_used_are_a_reason_not_to_be_ready_and_not_to_die(
    tmp_path: Path, spoil: Callable[[Path], None], weights: str, reason: str
) -> None:
    spoil(tmp_path / "m")
    env = {"MODEL_WEIGHTS": weights, "GSHARE_WEIGHTS_ROOT": str(tmp_path)}
    with loaded_app(MODEL, env) as (client, runtime):
        ready, live, call = client.get("/_/ready"), client.get("/_/health"), client.post("/", data="[1, 2]")

        assert runtime.condition.phase is Phase.FAILED
        assert (ready.status_code, ready.get_json()["state"]) == (503, "failed")
        assert reason in ready.get_json()["reason"]
        assert live.status_code == 200
        assert (call.status_code, call.get_json()["error"]["code"]) == (503, "not_ready")
        assert reason in call.get_json()["error"]["message"]


def test_a_full_disk_is_such_a_reason_too() -> None:
    with loaded_app(NO_ROOM) as (client, _):
        ready = client.get("/_/ready")

    assert ready.status_code == 503
    assert "No space left on device" in ready.get_json()["reason"]


def test_once_the_file_is_mended_the_same_process_gets_ready(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    truncated(folder)
    env = {"MODEL_WEIGHTS": "file:m", "GSHARE_WEIGHTS_ROOT": str(tmp_path)}
    with replica(MODEL, env) as it:
        it.wait_for_log(FAILED_LINE)
        pid = it.status()["pid"]
        live = it.call("/_/health").status
        save(folder)
        it.wait_for_log(READY_LINE)
        answer = it.call("/", "[1, 2]")

        assert live == 200
        assert (answer.status, answer.json()) == (200, {"labels": 3})
        assert it.status()["pid"] == pid
        assert it.log.count(FAILED_LINE) <= 3, "it tries again at growing intervals and does not spin"
