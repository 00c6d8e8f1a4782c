"""bert answers as transformers' own question-answering pipeline does on the same weights.

Version 5 of transformers has no such pipeline any more, so its answers were recorded with version 4
(`tests/data/qa/record.py`), together with the weights and the tokenizer they came from.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.hub_cache import hub_repository
from tests.served_app import FUNCTIONS, loaded_app, served

BERT = FUNCTIONS / "bert"
RECORDED = Path(__file__).parents[2] / "data" / "qa"
ANSWERS: list[dict[str, Any]] = json.loads((RECORDED / "answers.json").read_text())["answers"]
TINY = json.dumps({"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64})


@pytest.fixture(scope="module")
def recorded() -> Iterator[FlaskClient]:
    """bert on the recorded weights, batching whatever comes together."""
    env = {
        "MODEL_WEIGHTS": "file:qa",
        "GSHARE_WEIGHTS_ROOT": str(RECORDED.parent),
        "GSHARE_MAX_BATCH": "8",
        "GSHARE_MAX_BATCH_DELAY_MS": "50",
    }
    with served(BERT, env) as client:
        yield client


@pytest.fixture(scope="module")
def random() -> Iterator[FlaskClient]:
    with served(BERT, {"MODEL_CONFIG": TINY}) as client:
        yield client


def ask(client: FlaskClient, question: str, context: str) -> dict[str, Any]:
    response = client.post("/", json={"question": question, "context": context})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.get_json()
    return answer


@pytest.mark.parametrize("expected", ANSWERS, ids=[one["question"] for one in ANSWERS])
def test_answer_span_and_score_equal_those_of_the_pipeline(recorded: FlaskClient, expected: dict[str, Any]) -> None:
    found = ask(recorded, expected["question"], expected["context"])

    assert (found["answer"], found["start"], found["end"]) == (expected["answer"], expected["start"], expected["end"])
    assert found["score"] == pytest.approx(expected["score"], abs=1e-5)


def test_questions_of_mixed_length_answered_in_one_batch_get_the_same_answers(recorded: FlaskClient) -> None:
    app = recorded.application
    with ThreadPoolExecutor(len(ANSWERS)) as pool:
        found = list(pool.map(lambda one: ask(app.test_client(), one["question"], one["context"]), ANSWERS))

    assert [one["answer"] for one in found] == [one["answer"] for one in ANSWERS]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in ANSWERS], abs=1e-5)


def test_weights_from_a_hub_cache_give_the_same_and_are_named(hub_cache: Path) -> None:
    with hub_repository(hub_cache, "team/reader", revision="v1") as folder:
        for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(RECORDED / name, folder)

    with served(BERT, {"MODEL_WEIGHTS": "hf:team/reader@v1"}) as client:
        found = ask(client, ANSWERS[1]["question"], ANSWERS[1]["context"])

    assert found["score"] == pytest.approx(ANSWERS[1]["score"], abs=1e-5)
    assert found["weights"] == "hf:team/reader@v1"


def test_a_vocabulary_without_a_tokenizer_file_serves_as_well(hub_cache: Path) -> None:
    with hub_repository(hub_cache, "team/old") as folder:
        for name in ("config.json", "model.safetensors", "vocab.txt", "tokenizer_config.json"):
            shutil.copy(RECORDED / name, folder)

    with served(BERT, {"MODEL_WEIGHTS": "hf:team/old"}) as client:
        found = ask(client, ANSWERS[2]["question"], ANSWERS[2]["context"])

    assert (found["answer"], found["score"]) == (ANSWERS[2]["answer"], pytest.approx(ANSWERS[2]["score"], abs=1e-5))


@pytest.mark.parametrize(
    "context",
    [
        "plain words",
        "😀🚀 here & there 😀",
        "שלום עולם",
        "é è ô decomposed",
        "with a \x00 in it",
        "日本語のテキスト",
        "   padded   ",
        "word " * 3000,
    ],
)
def test_the_answer_is_a_piece_of_the_context_in_code_points(random: FlaskClient, context: str) -> None:
    found = ask(random, "Where?", context)

    assert found["answer"] == context[found["start"] : found["end"]] != ""
    assert 0 < found["score"] <= 1
    assert found["truncated"] is (len(context) > 10_000)
    assert (found["model"], found["weights"]) == ("bert", "random:0")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"question": "", "context": "x"}, "question: is empty"),
        ({"question": "Who?", "context": " \n "}, "context: is empty"),
        ({"question": "Who?", "context": "\u200b\u200b"}, "context: has no readable text"),
        ({"question": "?" * 300, "context": "x"}, "question: 300 tokens; 1–252 are allowed"),
        ({"question": "Who?"}, "missing required field `context`"),
        ({"question": "Who?", "context": 3}, "Expected `str`, got `int`"),
        ({"question": "Who?", "context": "x", "top_k": 3}, "unknown field `top_k`"),
        (["Who?"], "Expected `object`, got `array`"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_with_the_reason(
    random: FlaskClient, body: object, says: str
) -> None:
    response = random.post("/", json=body)

    assert response.status_code == 400
    assert response.get_json()["error"]["code"] == "bad_input"
    assert says in response.get_json()["error"]["message"]


def test_more_text_than_is_ever_read_is_refused(random: FlaskClient) -> None:
    assert random.post("/", json={"question": "Who?", "context": "x " * 600_000}).status_code == 413


def test_the_sample_beside_the_function_is_answered(random: FlaskClient) -> None:
    assert random.post("/", data=(BERT / "sample.json").read_bytes()).status_code == 200


def test_a_tokenizer_with_more_words_than_the_model_is_refused(tmp_path: Path) -> None:
    shutil.copytree(RECORDED, tmp_path / "qa")
    config = json.loads((tmp_path / "qa" / "config.json").read_text())
    (tmp_path / "qa" / "config.json").write_text(json.dumps(config | {"vocab_size": 100}))

    with loaded_app(BERT, {"MODEL_WEIGHTS": "file:qa", "GSHARE_WEIGHTS_ROOT": str(tmp_path)}) as (_, runtime):
        assert runtime.condition.phase == "failed"
        assert "tokens, the model only 100" in runtime.condition.reason


def test_an_architecture_asked_for_beside_real_weights_is_refused() -> None:
    env = {"MODEL_WEIGHTS": "file:qa", "GSHARE_WEIGHTS_ROOT": str(RECORDED.parent), "MODEL_CONFIG": TINY}

    with loaded_app(BERT, env) as (_, runtime):
        assert "MODEL_CONFIG only shapes random: weights" in runtime.condition.reason
