"""The functions of this repository behind the gateway, with weights that mean something."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.machine_under_test import MachineUnderTest
from tests.tiny_resnet import Digits, train_on_digits

pytestmark = pytest.mark.e2e
FUNCTIONS = Path(__file__).parents[2] / "functions"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    """A machine with this repository's functions, not started yet."""
    folder = tmp_path_factory.mktemp("models") / "m"
    machine = MachineUnderTest(folder, GSHARE_FUNCTIONS_PATH=str(FUNCTIONS))
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def digits(machine: MachineUnderTest) -> Digits:
    """A trained network under the machine's weights root, and digits it never saw."""
    return train_on_digits(machine.settings.weights_root / "digits")


def test_a_network_that_learned_digits_recognises_95_percent_of_unseen_ones(
    machine: MachineUnderTest, digits: Digits
) -> None:
    annotations = {"fastgshare/weights": "file:digits", "fastgshare/gpu_mem": "1Gi", "fastgshare/max_batch": "8"}
    machine.write_stack(digits={"image": "resnet50", "annotations": annotations})
    machine.up()

    def recognise(picture: bytes) -> str:
        reply = machine.post("digits", picture, **{"Content-Type": "image/png"}).json()
        assert reply["weights"].startswith("file:digits")
        label: str = reply["predictions"][0]["label"]
        return label

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(recognise, digits.pictures))
    right = sum(int(label) == truth for label, truth in zip(found, digits.labels, strict=True))
    assert right / len(digits.labels) >= 0.95


def test_garbage_is_refused_and_the_worker_serves_on(machine: MachineUnderTest, digits: Digits) -> None:
    before = machine.replica_status("digits")["pid"]
    for body in (b"", b"garbage", b"{", b"\xff\xd8\xff" + b"\0" * 1000, digits.pictures[0][:60], b"[" * 100_000):
        answer = machine.post("digits", body)
        assert 400 <= answer.status_code < 500, (body[:20], answer.status_code, answer.text)
        assert answer.json()["error"]["message"]
    good = machine.post("digits", digits.pictures[0], **{"Content-Type": "image/png"})
    assert good.status_code == 200
    assert machine.replica_status("digits")["pid"] == before
