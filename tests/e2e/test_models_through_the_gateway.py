"""All six functions behind the gateway, on both protocols; three of the small models really learned something."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput

from tests.e2e.machine_under_test import MachineUnderTest
from tests.open_inference import binary_body, read_outputs
from tests.sounds import sound_file
from tests.tiny_functions import FUNCTIONS, TINY_FUNCTIONS, TinyFunction
from tests.tiny_gnmt import held_out_strings
from tests.tiny_resnet import Digits, train_on_digits
from tests.tiny_rnnt import melody

pytestmark = pytest.mark.e2e
TRAINED = {"resnet50": "digits", "rnnt": "tones", "gnmt": "reverser"}
"""Functions with weights that were trained here; the others have random ones."""


@pytest.fixture(scope="module")
def machine(
    tmp_path_factory: pytest.TempPathFactory, tones_weights: Path, reverser_weights: Path
) -> Iterator[MachineUnderTest]:
    """A machine with this repository's functions, not started yet; the trained weights lie under its weights root."""
    folder = tmp_path_factory.mktemp("models") / "m"
    machine = MachineUnderTest(folder, GSHARE_FUNCTIONS_PATH=str(FUNCTIONS))
    for weights in (tones_weights, reverser_weights):
        shutil.copytree(weights, machine.settings.weights_root / weights.name)
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def digits(machine: MachineUnderTest) -> Digits:
    """A trained network under the machine's weights root, and digits it never saw."""
    return train_on_digits(machine.settings.weights_root / "digits")


@pytest.fixture(scope="module")
def six(machine: MachineUnderTest, digits: Digits) -> MachineUnderTest:
    """The machine with all six functions ready."""
    machine.write_stack(**{tiny.name: _entry(tiny) for tiny in TINY_FUNCTIONS})
    machine.up()
    return machine


def _entry(tiny: TinyFunction) -> dict[str, Any]:
    share = {"fastgshare/gpu_sm_partition": "24", "fastgshare/gpu_quota_request": "0.15", "fastgshare/gpu_mem": "700Mi"}
    if tiny.name in TRAINED:
        return {
            "annotations": share | {"fastgshare/weights": f"file:{TRAINED[tiny.name]}", "fastgshare/max_batch": "8"}
        }
    return {
        "annotations": share | {"fastgshare/weights": "random:0"},
        "environment": {"MODEL_CONFIG": json.dumps(tiny.config)},
    }


def test_a_network_that_learned_digits_recognises_95_percent_of_unseen_ones(
    six: MachineUnderTest, digits: Digits
) -> None:
    def recognise(picture: bytes) -> str:
        reply = six.post("resnet50", picture, **{"Content-Type": "image/png"}).json()
        assert reply["weights"].startswith("file:digits")
        label: str = reply["predictions"][0]["label"]
        return label

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(recognise, digits.pictures))
    right = sum(int(label) == truth for label, truth in zip(found, digits.labels, strict=True))
    assert right / len(digits.labels) >= 0.95


def test_a_model_that_learned_tones_writes_down_95_percent_of_unheard_ones(six: MachineUnderTest) -> None:
    source = random.Random(30_000)
    unheard = [melody(source) for _ in range(20)]
    found = [
        six.post("rnnt", sound_file(one.samples), **{"Content-Type": "audio/wav"}).json()["text"] for one in unheard
    ]
    right = sum(_in_common(one.text, text) for one, text in zip(unheard, found, strict=True))
    symbols = sum(max(len(one.text), len(text)) for one, text in zip(unheard, found, strict=True))
    assert right / symbols >= 0.95


def test_a_model_that_learned_to_reverse_reverses_strings_it_never_saw_exactly(six: MachineUnderTest) -> None:
    texts = held_out_strings(16, seed=2)
    replies = [
        six.post("gnmt", json.dumps({"text": text}).encode(), **{"Content-Type": "application/json"}).json()
        for text in texts
    ]
    assert [reply["translation"] for reply in replies] == [text[::-1] for text in texts]


@pytest.mark.parametrize("tiny", TINY_FUNCTIONS, ids=lambda tiny: tiny.name)
def test_every_function_answers_on_both_protocols(six: MachineUnderTest, tiny: TinyFunction) -> None:
    body = tiny.sample(random.Random(7))
    plain = six.post(tiny.name, body, **{"Content-Type": tiny.content_type})
    assert plain.status_code == 200, plain.text
    assert plain.json()["weights"] == f"file:{TRAINED[tiny.name]}" if tiny.name in TRAINED else "random:0"
    tensors = binary_body([body, body])
    answer = six.post(f"{tiny.name}/v2/models/{tiny.name}/infer", tensors.data, **tensors.headers)
    assert answer.status_code == 200, answer.text
    outputs = read_outputs(answer.content, answer.headers)
    assert outputs
    assert all(len(values) == 2 and np.array_equal(values[0], values[1]) for values in outputs.values())


def test_tritonclient_infers_through_the_gateway_as_people_use_it(six: MachineUnderTest, digits: Digits) -> None:
    pictures = np.array(digits.pictures[:20], dtype=object)
    tensor = InferInput("input", [20], "BYTES").set_data_from_numpy(pictures)
    client = InferenceServerClient(f"{six.url.removeprefix('http://')}/function/resnet50")

    assert client.is_model_ready("resnet50")
    labels = client.infer("resnet50", [tensor], parameters={"top_k": 1}).as_numpy("label")
    client.close()

    right = sum(int(label) == truth for label, truth in zip(labels.flat, digits.labels, strict=False))
    assert right >= 18


def test_garbage_is_refused_and_the_worker_serves_on(six: MachineUnderTest, digits: Digits) -> None:
    before = six.replica_status("resnet50")["pid"]
    for body in (b"", b"garbage", b"{", b"\xff\xd8\xff" + b"\0" * 1000, digits.pictures[0][:60], b"[" * 100_000):
        answer = six.post("resnet50", body)
        assert 400 <= answer.status_code < 500, (body[:20], answer.status_code, answer.text)
        assert answer.json()["error"]["message"]
    good = six.post("resnet50", digits.pictures[0], **{"Content-Type": "image/png"})
    assert good.status_code == 200
    assert six.replica_status("resnet50")["pid"] == before


def _in_common(written: str, heard: str) -> int:
    """How many symbols of `written` stand in `heard` in the same order."""
    return sum(block.size for block in SequenceMatcher(None, written, heard, autojunk=False).get_matching_blocks())
