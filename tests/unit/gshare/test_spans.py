from __future__ import annotations

import numpy as np
import pytest
from gshare.inputs.text import Question, QuestionTokenizer, character_tokenizer
from gshare.spans import Answer, best_answer

TOKENIZER = QuestionTokenizer(character_tokenizer(), max_tokens=48, stride_tokens=16)
CONTEXT = "The red fox runs"


def answer(context: str, *, starts: dict[int, float], ends: dict[int, float]) -> Answer:
    """The answer for logits that are 0 but at these characters of the context (as tokens: one a character)."""
    windows = TOKENIZER.cut(Question("Who?", context)).encodings
    logits = []
    for window in windows:
        pair = (np.zeros(len(window)), np.zeros(len(window)))
        for token, (sequence, (begin, _)) in enumerate(zip(window.sequence_ids, window.offsets, strict=True)):
            if sequence == 1:
                pair[0][token], pair[1][token] = starts.get(begin, 0.0), ends.get(begin, 0.0)
        logits.append(pair)
    return best_answer(context, windows, logits)


def test_the_likeliest_span_is_found_and_widened_to_whole_words() -> None:
    found = answer(CONTEXT, starts={5: 20.0}, ends={9: 20.0})

    assert (found.answer, found.start, found.end) == ("red fox", 4, 11)
    assert found.score == pytest.approx(1.0, abs=1e-3)


def test_an_end_before_the_start_is_no_answer() -> None:
    found = answer(CONTEXT, starts={8: 20.0}, ends={0: 20.0, 12: 15.0})

    assert found.answer == "fox runs"


def test_an_answer_is_at_most_fifteen_tokens_long() -> None:
    long = "abcdefghij klmnopqrst uvwxyz"

    assert answer(long, starts={0: 20.0}, ends={14: 20.0}).answer == "abcdefghij klmnopqrst"
    assert answer(long, starts={0: 20.0}, ends={27: 20.0, 9: 5.0}).answer == "abcdefghij"


def test_the_best_of_all_windows_is_the_answer() -> None:
    text = "word " * 30 + "answer " + "word " * 30
    place = text.index("answer")

    found = answer(text, starts={place: 30.0}, ends={place + 5: 30.0})

    assert (found.answer, found.start) == ("answer", place)


def test_the_same_text_found_again_adds_to_its_score() -> None:
    once = answer("one two", starts={0: 5.0}, ends={2: 5.0, 1: 5.0})

    assert once.answer == "one"
    assert once.score > answer("one two", starts={0: 5.0}, ends={2: 5.0}).score


def test_the_question_and_cls_are_never_the_answer() -> None:
    windows = TOKENIZER.cut(Question("Who?", "x y")).encodings
    high_outside = np.array([50.0 if sequence != 1 else 0.0 for sequence in windows[0].sequence_ids])
    high_outside[0] = 0.0

    found = best_answer("x y", windows, [(high_outside, high_outside)])

    assert set(found.answer) <= set("x y")


@pytest.mark.parametrize("marks", ["\u0301", "\u0302\u0323", "\ufe0f"])
def test_marks_on_the_last_letter_belong_to_the_answer(marks: str) -> None:
    text = f"a cafe{marks} here"

    found = answer(text, starts={2: 20.0}, ends={5: 20.0})

    assert (found.answer, found.start, found.end) == (f"cafe{marks}", 2, 6 + len(marks))
