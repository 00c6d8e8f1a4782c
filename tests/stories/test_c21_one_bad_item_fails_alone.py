"""C21 (LitServe 340): in a batch of eight one bad item fails, the seven others get their own answers."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask.testing import FlaskClient
from gshare.server import runtime_of
from PIL import Image

from tests.served_app import FUNCTIONS, served

EIGHT = 8
TINY = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 12}
BATCHING = {"GSHARE_MAX_BATCH": str(EIGHT), "GSHARE_MAX_BATCH_DELAY_MS": "300"}
FRAGILE = """
import torch
from gshare.handler import Handler

class Fragile(Handler):
    def load(self, context):
        self.passes = 0
    def example(self): return 0
    def decode(self, request): return request.json(int)
    def forward(self, items):
        self.passes += 1
        if 5 in items:
            raise ValueError("five breaks the model")
        return [10 * item for item in items]
    def encode(self, output, request): return {"tenfold": output, "passes": self.passes}
"""


def picture(shade: int) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((48, 48), shade).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def together(client: FlaskClient, bodies: list[bytes]) -> list[tuple[int, dict[str, object]]]:
    def post(body: bytes) -> tuple[int, dict[str, object]]:
        answer = client.application.test_client().post("/", data=body)
        return answer.status_code, answer.get_json()

    with ThreadPoolExecutor(len(bodies)) as pool:
        return list(pool.map(post, bodies))


@pytest.fixture
def classifier() -> Iterator[FlaskClient]:
    with served(FUNCTIONS / "resnet50", {"MODEL_CONFIG": json.dumps(TINY)} | BATCHING) as client:
        yield client


def test_of_eight_pictures_the_corrupt_one_is_400_and_seven_get_their_own_answers(classifier: FlaskClient) -> None:
    bodies = [picture(20 * (number + 1)) for number in range(EIGHT)]
    expected = [classifier.post("/", data=body).get_json() for body in bodies]
    before = runtime_of(classifier.application).metrics.counts.batches
    bodies[3] = bodies[3][: len(bodies[3]) // 2]

    answers = together(classifier, bodies)
    passes = runtime_of(classifier.application).metrics.counts.batches - before

    assert [status for status, _ in answers] == [200, 200, 200, 400, 200, 200, 200, 200]
    assert passes < EIGHT - 1
    for place, (_, answer) in enumerate(answers):
        if place != 3:
            assert scores(answer) == pytest.approx(scores(expected[place]), abs=1e-4)


def test_when_the_model_itself_raises_each_runs_alone_once_and_only_the_guilty_one_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with served(FRAGILE, BATCHING) as client:
        answers = together(client, [str(number).encode() for number in range(EIGHT)])

    assert [status for status, _ in answers] == [200, 200, 200, 200, 200, 500, 200, 200]
    assert [answer.get("tenfold") for _, answer in answers] == [0, 10, 20, 30, 40, None, 60, 70]
    guilty = answers[5][1]["error"]
    assert guilty == {
        "code": "model_fault",
        "message": "forward() raised ValueError: five breaks the model",
        "retryable": False,
    }


def scores(answer: dict[str, object]) -> dict[str, float]:
    predictions = answer["predictions"]
    assert isinstance(predictions, list)
    return {one["label"]: one["score"] for one in predictions}
