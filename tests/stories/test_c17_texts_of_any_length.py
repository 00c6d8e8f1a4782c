"""C17 (transformers 125, 5611, 680; flair 392): a text over 512 tokens was an index error, and on a GPU the end.

Tokens are counted first; what is more than the model takes is read in windows, and what is left out is said.
"""

from __future__ import annotations

from typing import Any

import pytest
from flask.testing import FlaskClient

from tests.tiny_reader import POSITIONS

HAY = "hay "
AROUND = 5
"""Tokens of an input besides its context: three marks, and the question's two."""
QUESTION = "where ?"


def ask(reader: FlaskClient, context: str) -> dict[str, Any]:
    response = reader.post("/", json={"question": QUESTION, "context": context})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.get_json()
    return answer


@pytest.mark.parametrize("tokens", [POSITIONS - 1, POSITIONS, POSITIONS + 1, 5 * POSITIONS])
def test_the_last_word_is_found_however_many_tokens_come_before_it(reader: FlaskClient, tokens: int) -> None:
    context = HAY * (tokens - AROUND - 1) + "needle"

    found = ask(reader, context)

    assert (found["answer"], found["start"], found["truncated"]) == ("needle", context.index("needle"), False)


@pytest.mark.parametrize("place", [0, 1_000, 7_000])
def test_of_100_000_tokens_the_first_thousands_are_read_and_the_answer_says_that_the_rest_was_not(
    reader: FlaskClient, place: int
) -> None:
    context = HAY * place + "needle " + HAY * (100_000 - place - 1)

    found = ask(reader, context)

    assert (found["answer"], found["start"], found["truncated"]) == ("needle", len(HAY) * place, True)


def test_what_lies_beyond_is_not_found_and_the_answer_says_that_it_was_not_read(reader: FlaskClient) -> None:
    found = ask(reader, HAY * 99_999 + "needle")

    assert found["truncated"]
    assert "needle" not in found["answer"]


def test_a_question_that_leaves_no_room_for_the_text_is_refused_by_its_tokens_and_the_next_is_answered(
    reader: FlaskClient,
) -> None:
    for tokens in (POSITIONS - 1, POSITIONS, POSITIONS + 1, 2_000):
        refused = reader.post("/", json={"question": HAY * tokens, "context": "a needle"})

        assert refused.status_code == 400
        assert refused.get_json()["error"]["message"] == f"question: {tokens} tokens; 1–252 are allowed"
        assert ask(reader, "a needle")["answer"] == "needle"


def test_a_text_beyond_any_reading_is_refused_and_the_next_is_answered(reader: FlaskClient) -> None:
    refused = reader.post("/", json={"question": QUESTION, "context": HAY * 300_000})

    assert refused.status_code == 413
    assert "at most 1,000,000" in refused.get_json()["error"]["message"]
    assert ask(reader, "a needle")["answer"] == "needle"
