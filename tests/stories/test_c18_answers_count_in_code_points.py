"""C18 (transformers 2623, 5711; argilla 5729): an empty context crashed; an emoji shifted the answer's place."""

from __future__ import annotations

import json

import pytest
from flask.testing import FlaskClient

PLACES = {
    "emoji": ("😀🚀 here 👩‍👩‍👧‍👦 is a ", "needle", " 😀"),
    "an emoji for an answer": ("🧵 ", "🪡", " 🧵"),
    "right to left": ("איפה ה ", "מחט", " כאן, שלום"),
    "right to left with marks": ("שָׁלוֹם ", "מַחַט", " שָׁם"),
    "both directions": ("שלום \u202e here \u202c ", "needle", " עולם"),
    "marks before it": ("e\u0301 o\u0302\u0323 e\u0301 ", "needle", " a\u0308"),
    "marks within it": ("a ", "ne\u0301e\u0323dle\u0302", " of steel"),
    "capitals": ("A ", "NEEDLE", "!"),
    "NUL before it": ("\x00 a \x00\x00 ", "needle", "\x00 x"),
    "NUL within it": ("a ", "nee\x00dle", "."),
    "beyond the first plane": ("𝔞𝔟 𒀀𒀁 ", "needle", " 𠜎"),
    "spaces": (" \u00a0\u3000\t\n ", "needle", "   "),
}
"""What stands before the answer, the answer, and what follows."""


@pytest.mark.parametrize("escaped", [False, True], ids=["as UTF-8", "escaped"])
@pytest.mark.parametrize("place", PLACES)
def test_the_place_of_an_answer_counts_code_points(reader: FlaskClient, place: str, escaped: bool) -> None:
    before, answer, after = PLACES[place]
    context = before + answer + after

    response = reader.post("/", data=json.dumps({"question": "where?", "context": context}, ensure_ascii=escaped))
    found = response.get_json()

    assert response.status_code == 200, response.text
    assert (found["answer"], found["start"], found["end"]) == (answer, len(before), len(before + answer))


@pytest.mark.parametrize(
    "context", ["😀🚀👩‍👩‍👧‍👦", "שלום עולם", "e\u0301", "\x00x\x00", "日本", "a\u202eb", "🇩🇪", "\ufffd", "\ufeffx"]
)
def test_where_nothing_fits_the_answer_is_still_a_piece_of_the_text(reader: FlaskClient, context: str) -> None:
    response = reader.post("/", json={"question": "where?", "context": context})

    assert response.status_code in (200, 400), response.text
    if response.status_code == 200:
        found = response.get_json()
        assert found["answer"] == context[found["start"] : found["end"]] != ""


@pytest.mark.parametrize(
    ("question", "context", "says"),
    [
        ("", "a needle", "question: is empty"),
        ("where?", "", "context: is empty"),
        (" \t\n\u3000", "a needle", "question: is empty"),
        ("where?", "   ", "context: is empty"),
        ("\x00", "a needle", "question: 0 tokens"),
        ("where?", "\x00\x00", "context: has no readable text"),
        ("where?", "\u200b\u200d", "context: has no readable text"),
        ("where?", "\u0301\u0302", "context: has no readable text"),
    ],
)
def test_without_text_there_is_a_reason_and_the_next_question_is_answered(
    reader: FlaskClient, question: str, context: str, says: str
) -> None:
    refused = reader.post("/", json={"question": question, "context": context})
    answered = reader.post("/", json={"question": "where?", "context": "a needle"})

    assert refused.status_code == 400
    assert says in refused.get_json()["error"]["message"]
    assert (answered.status_code, answered.get_json()["answer"]) == (200, "needle")


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude80 needle", "\\ud83dx"])
def test_half_a_character_is_no_text(reader: FlaskClient, half: str) -> None:
    body = f'{{"question": "where?", "context": "{half}"}}'

    assert reader.post("/", data=body).status_code == 400
