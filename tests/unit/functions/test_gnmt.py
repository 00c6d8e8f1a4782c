"""gnmt over HTTP: a model that really learned, random weights, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from flask.testing import FlaskClient

from tests.served_app import FUNCTIONS, loaded_app, served
from tests.tiny_gnmt import CONFIG, held_out_strings, is_held_out

GNMT = FUNCTIONS / "gnmt"
TINY = json.dumps({"hidden_size": 16, "vocab_size": 600})


@pytest.fixture(scope="module")
def weights_root(reverser_weights: Path) -> Path:
    """The folder that holds the trained weights."""
    return reverser_weights.parent


@pytest.fixture(scope="module")
def reverser(weights_root: Path) -> Iterator[FlaskClient]:
    env = {
        "MODEL_WEIGHTS": "file:reverser",
        "GSHARE_WEIGHTS_ROOT": str(weights_root),
        "GSHARE_MAX_BATCH": "8",
        "GSHARE_MAX_BATCH_DELAY_MS": "50",
    }
    with served(GNMT, env) as client:
        yield client


@pytest.fixture(scope="module")
def random() -> Iterator[FlaskClient]:
    with served(GNMT, {"MODEL_CONFIG": TINY}) as client:
        yield client


def translate(client: FlaskClient, text: str) -> dict[str, Any]:
    response = client.post("/", json={"text": text})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.get_json()
    return answer


def test_a_model_trained_to_reverse_digits_reverses_those_it_never_saw(reverser: FlaskClient) -> None:
    texts = held_out_strings(32, seed=1)
    assert all(map(is_held_out, texts))

    answer = reverser.post("/", json={"texts": texts}).get_json()

    assert [one["translation"] for one in answer["translations"]] == [text[::-1] for text in texts]
    assert not any(one["truncated"] for one in answer["translations"])
    assert (answer["model"], answer["weights"]) == ("gnmt", "file:reverser")


def test_sentences_of_mixed_length_translated_together_get_what_each_gets_alone(reverser: FlaskClient) -> None:
    texts = ["7", "1234", "90817", "55", "402 31", "8 8 8 8 8 8 8"]
    alone = [translate(reverser, text) for text in texts]
    app = reverser.application

    listed = reverser.post("/", json={"texts": texts}).get_json()["translations"]
    with ThreadPoolExecutor(len(texts)) as pool:
        batched = list(pool.map(lambda text: translate(app.test_client(), text), texts))

    for together in (listed, batched):
        assert [one["translation"] for one in together] == [one["translation"] for one in alone]
        assert [one["score"] for one in together] == pytest.approx([one["score"] for one in alone], abs=1e-4)


def test_plain_text_is_read_by_its_charset(random: FlaskClient) -> None:
    expected = translate(random, "Größe")["score"]

    for charset in ("utf-8", "latin-1"):
        response = random.post("/", data="Größe".encode(charset), content_type=f"text/plain; charset={charset}")
        assert response.get_json()["score"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "plain words",
        "with a \x00 in it",
        "\x00",
        "😀🚀",
        "שלום עולם",
        "e\u0301 decomposed",
        "日本語",
        "\u202e",
        "x" * 256,
    ],
)
def test_any_text_is_answered_at_most_twice_as_long_and_names_its_weights(random: FlaskClient, text: str) -> None:
    answer = translate(random, text)

    assert 0 < len(answer["translation"]) <= 2 * len(text) + 10
    assert (answer["model"], answer["weights"]) == ("gnmt", "random:0")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"text": ""}, 400, "text: is empty"),
        ({"text": " \n "}, 400, "text: is empty"),
        ({"texts": ["a", ""]}, 400, "texts[1]: is empty"),
        ({"texts": []}, 400, "Expected `array` of length >= 1"),
        ({"texts": ["a"] * 33}, 400, "Expected `array` of length <= 32"),
        ({"text": "a", "texts": ["b"]}, 400, "not both"),
        ({}, 400, 'send {"text": "…"}'),
        ({"text": 3}, 400, "Expected `str | null`, got `int`"),
        ({"text": "a", "beam": 3}, 400, "unknown field `beam`"),
        (["a"], 400, "Expected `object`, got `array`"),
        ({"text": "a" * 257}, 413, "text: 257 tokens; at most 256"),
        ({"texts": ["a" * 250] * 5}, 413, "texts: 1,260 tokens together; at most 1,024"),
        ({"texts": ["a", "a" * 100_000]}, 413, "texts[1]: 100,000 characters; at most 5,000"),
    ],
)
def test_what_cannot_be_translated_is_refused_with_the_reason(
    random: FlaskClient, body: object, status: int, says: str
) -> None:
    response = random.post("/", json=body)

    assert response.status_code == status, response.text
    assert says in response.get_json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b'{"text": "\\ud800"}', b'{"text": "\\ud83d\\ude00 \\udc00"}', b'{"text": "\xff"}', b"\xff\xfe"]
)
def test_half_a_character_is_refused_or_answered_but_breaks_nothing(random: FlaskClient, body: bytes) -> None:
    assert random.post("/", data=body).status_code in (200, 400)
    assert translate(random, "next")["translation"]


def test_only_control_characters_are_nothing_to_translate(reverser: FlaskClient) -> None:
    response = reverser.post("/", json={"text": "\x00\x07"})

    assert response.status_code == 400
    assert "has no readable text" in response.get_json()["error"]["message"]


def test_the_sample_beside_the_function_is_answered(random: FlaskClient) -> None:
    assert random.post("/", data=(GNMT / "sample.json").read_bytes()).status_code == 200


def test_a_setting_that_the_model_does_not_have_is_refused() -> None:
    with loaded_app(GNMT, {"MODEL_CONFIG": json.dumps({"hiden_size": 8})}) as (_, runtime):
        assert runtime.condition.phase == "failed"
        assert "random:0: the model's settings cannot be used" in runtime.condition.reason
        assert "hiden_size" in runtime.condition.reason


def test_weights_of_another_shape_are_refused(weights_root: Path) -> None:
    other = weights_root / "other"
    other.mkdir()
    for file in (weights_root / "reverser").iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    (other / "config.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(CONFIG, hidden_size=32)))

    with loaded_app(GNMT, {"MODEL_WEIGHTS": "file:other", "GSHARE_WEIGHTS_ROOT": str(weights_root)}) as (_, runtime):
        assert "tensors have another shape" in runtime.condition.reason
