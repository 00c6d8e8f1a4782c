"""C20 (triton 6937, 8156, 270, 3032): requests of unlike length share batches, and answer as they do alone."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from flask.testing import FlaskClient
from gshare.server import runtime_of

from tests.served_app import FUNCTIONS, served
from tests.sounds import sound_file, tone
from tests.tiny_rnnt import CONFIG

REQUESTS = 32
QA = Path(__file__).parent.parent / "data"
WORDS = ["functions", "share", "one", "card", "in", "space", "and", "time", "under", "a", "latency", "objective"]
BERT = {"MODEL_WEIGHTS": "file:qa", "GSHARE_WEIGHTS_ROOT": str(QA)}
RNNT = {"MODEL_CONFIG": msgspec.json.encode(CONFIG).decode()}
BATCHING = {"GSHARE_MAX_BATCH": "8", "GSHARE_MAX_BATCH_DELAY_MS": "300", "GSHARE_MAX_INFLIGHT": str(REQUESTS)}


def questions() -> list[bytes]:
    """From 5 to 300 words of context."""
    source = random.Random(0)
    lengths = [round(5 * 60 ** (number / (REQUESTS - 1))) for number in range(REQUESTS)]
    contexts = [" ".join(source.choices(WORDS, k=length)) for length in lengths]
    return [msgspec.json.encode({"question": "what is shared?", "context": context}) for context in contexts]


def sounds() -> list[bytes]:
    """From a fifth of a second to some three."""
    source = np.random.default_rng(0)
    lengths_s = [0.2 + 0.09 * number for number in range(REQUESTS)]
    return [
        sound_file(np.concatenate([tone(source.uniform(200, 3000), s / 2), tone(source.uniform(200, 3000), s / 2)]))
        for s in lengths_s
    ]


@contextmanager
def asked(function: str, env: dict[str, str], bodies: Sequence[bytes]) -> Iterator[tuple[list[Any], int]]:
    """The answers to all bodies, sent at once, and how many passes they took."""
    with served(FUNCTIONS / function, env) as client, ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda body: _ask(client, body), bodies))
        yield answers, runtime_of(client.application).metrics.counts.batches


def alone(function: str, env: dict[str, str], bodies: Sequence[bytes]) -> list[Any]:
    with served(FUNCTIONS / function, env) as client:
        return [_ask(client, body) for body in bodies]


def _ask(client: FlaskClient, body: bytes) -> Any:
    answer = client.application.test_client().post("/", data=body, content_type="application/octet-stream")
    assert answer.status_code == 200, answer.text
    return answer.get_json()


def test_32_texts_of_unlike_length_share_batches_and_answer_as_alone() -> None:
    bodies = questions()
    with asked("bert", BERT | BATCHING, bodies) as (together, passes):
        single = alone("bert", BERT, bodies)

    assert passes < REQUESTS
    for one, other in zip(together, single, strict=True):
        assert one | {"score": None} == other | {"score": None}
        assert one["score"] == pytest.approx(other["score"], abs=1e-4)


def test_32_sounds_of_unlike_length_share_batches_and_read_as_alone() -> None:
    bodies = sounds()
    with asked("rnnt", RNNT | BATCHING, bodies) as (together, passes):
        single = alone("rnnt", RNNT, bodies)

    assert passes < REQUESTS
    assert together == single
    assert any(answer["text"] for answer in together)
