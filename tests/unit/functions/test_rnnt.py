"""rnnt over HTTP: a model that really learned, random weights, and what it refuses."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from gshare.condition import Phase
from werkzeug.test import TestResponse

from tests.served_app import FUNCTIONS, loaded_app, served
from tests.sounds import noise, sound_file, tone, with_bytes
from tests.tiny_rnnt import Melody, melody

RNNT = FUNCTIONS / "rnnt"
SAMPLE = (RNNT / "sample.wav").read_bytes()
TINY = json.dumps({"encoder_hidden": 32, "prediction_hidden": 16, "joint_hidden": 32})
RATES_HZ = (8_000, 16_000, 22_050, 44_100, 48_000)


@pytest.fixture(scope="module")
def weights_root(tones_weights: Path) -> Path:
    """The folder that holds the trained weights."""
    return tones_weights.parent


@pytest.fixture(scope="module")
def trained(weights_root: Path) -> Iterator[FlaskClient]:
    env = {
        "MODEL_WEIGHTS": "file:tones",
        "GSHARE_WEIGHTS_ROOT": str(weights_root),
        "GSHARE_MAX_BATCH": "8",
        "GSHARE_MAX_BATCH_DELAY_MS": "50",
    }
    with served(RNNT, env) as client:
        yield client


@pytest.fixture(scope="module")
def untrained() -> Iterator[FlaskClient]:
    with served(RNNT, {"MODEL_CONFIG": TINY, "MAX_AUDIO_SECONDS": "10"}) as client:
        yield client


def post(client: FlaskClient, body: bytes, content_type: str = "audio/wav") -> TestResponse:
    return client.post("/", data=body, content_type=content_type)


def transcribe(client: FlaskClient, body: bytes, content_type: str = "audio/wav") -> dict[str, Any]:
    response = post(client, body, content_type)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.get_json()
    return answer


def melodies(count: int, **lengths: int) -> list[Melody]:
    """Melodies that training never saw."""
    source = random.Random(20_000)
    return [melody(source, **lengths) for _ in range(count)]


def right_symbols(written: str, heard: str) -> int:
    """How many symbols of `written` stand in `heard` in the same order."""
    return sum(block.size for block in SequenceMatcher(None, written, heard, autojunk=False).get_matching_blocks())


def test_a_model_trained_on_tones_writes_down_those_it_never_heard(trained: FlaskClient) -> None:
    unheard = melodies(40)

    found = [transcribe(trained, sound_file(one.samples)) for one in unheard]

    symbols = sum(max(len(one.text), len(answer["text"])) for one, answer in zip(unheard, found, strict=True))
    right = sum(right_symbols(one.text, answer["text"]) for one, answer in zip(unheard, found, strict=True))
    assert right / symbols >= 0.95
    assert (found[0]["model"], found[0]["weights"]) == ("rnnt", "file:tones")
    assert found[0]["seconds"] == pytest.approx(len(unheard[0].samples) / 16_000, abs=1e-3)


def test_sounds_of_mixed_length_heard_together_get_what_each_gets_alone(trained: FlaskClient) -> None:
    files = [sound_file(one.samples) for one in melodies(12, shortest=1, longest=9)]
    alone = [transcribe(trained, file) for file in files]
    app = trained.application

    with ThreadPoolExecutor(len(files)) as pool:
        together = list(pool.map(lambda file: transcribe(app.test_client(), file), files))

    assert together == alone


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
def test_one_melody_at_every_rate_gives_the_same_text(trained: FlaskClient, kind: str) -> None:
    source = random.Random(3)
    state, found = source.getstate(), {}
    for rate_hz in RATES_HZ:
        source.setstate(state)
        one = melody(source, shortest=4, longest=4, rate_hz=rate_hz)
        found[rate_hz] = transcribe(trained, sound_file(one.samples, rate_hz=rate_hz, kind=kind, channels=2))

    assert {answer["text"] for answer in found.values()} == {one.text}
    assert {rate_hz: answer["sample_rate"] for rate_hz, answer in found.items()} == {rate: rate for rate in RATES_HZ}


def test_the_header_wins_over_a_declared_rate_and_the_reply_says_so(trained: FlaskClient) -> None:
    file = sound_file(melodies(1)[0].samples)
    expected = transcribe(trained, file)

    found = transcribe(trained, file, "audio/wav; rate=8000")

    assert "note" not in expected
    assert found == expected | {"note": "Content-Type says 8000 Hz, the file's header 16000; the header was used"}


def test_bytes_form_and_json_give_the_same(untrained: FlaskClient) -> None:
    expected = transcribe(untrained, SAMPLE)
    body = {"audio": base64.b64encode(SAMPLE).decode()}

    assert transcribe(untrained, SAMPLE, "application/octet-stream") == expected
    assert untrained.post("/", data={"audio": (io.BytesIO(SAMPLE), "a.wav")}).get_json() == expected
    assert untrained.post("/", json=body).get_json() == expected
    assert expected["weights"] == "random:0"
    assert expected["seconds"] == 2.4


def test_silence_has_no_words_even_among_sounds(untrained: FlaskClient) -> None:
    assert transcribe(untrained, sound_file(np.zeros(16_000)))["text"] == ""


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"RIFF", 400, "no WAV or FLAC sound"),
        (SAMPLE[:44], 400, "the WAV file is cut"),
        (sound_file(tone(440, 0.01)), 400, "0.010 s long; at least 0.1 s"),
        (sound_file(np.full(8000, np.nan), subtype="FLOAT"), 400, "no sound (nan)"),
        (b"OggS" + bytes(50), 415, "the body is Ogg"),
        (sound_file(noise(10.5)), 413, "10.5 s long; at most 10 s"),
        (sound_file(np.zeros(3600 * 8000, np.int16), rate_hz=8000, kind="FLAC"), 413, "3600.0 s long; at most 10 s"),
        (with_bytes(SAMPLE, 22, [0xFF, 0xFF]), 400, "broken"),
        (b'{"audio": "http://localhost/a.wav"}', 400, "not base64"),
    ],
)
def test_what_cannot_be_heard_is_refused_and_the_next_sound_is_served(
    untrained: FlaskClient, body: bytes, status: int, says: str
) -> None:
    response = post(untrained, body)

    assert response.status_code == status
    assert says in response.get_json()["error"]["message"]
    assert post(untrained, SAMPLE).status_code == 200


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"MAX_AUDIO_SECONDS": "1h"}, "MAX_AUDIO_SECONDS='1h': seconds, 0.1–600"),
        ({"MAX_AUDIO_SECONDS": "nan"}, "MAX_AUDIO_SECONDS='nan'"),
        ({"MAX_AUDIO_SECONDS": "3600"}, "MAX_AUDIO_SECONDS='3600'"),
        ({"MODEL_CONFIG": '{"hidden": 3}'}, "unknown field `hidden`"),
        ({"MODEL_CONFIG": '{"stack": 0}'}, "`int` >= 1 - at `$.stack`"),
    ],
)
def test_a_setting_that_cannot_be_used_is_the_reason_for_not_being_ready(env: dict[str, str], says: str) -> None:
    with loaded_app(RNNT, {"MODEL_CONFIG": TINY} | env) as (_, runtime):
        assert runtime.condition.phase is Phase.FAILED
        assert says in runtime.condition.reason


def test_weights_of_another_model_are_refused_by_name(weights_root: Path) -> None:
    folder = weights_root / "other"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes((weights_root / "tones" / "model.safetensors").read_bytes())
    (folder / "config.json").write_text('{"model_type": "bert"}')

    with loaded_app(RNNT, {"MODEL_WEIGHTS": "file:other", "GSHARE_WEIGHTS_ROOT": str(weights_root)}) as (_, runtime):
        assert "config.json is not that of an RNN-T: Invalid enum value 'bert'" in runtime.condition.reason
