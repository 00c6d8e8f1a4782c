"""From a question-answering model's two numbers per token to the answer's characters.

The computation is that of the question-answering pipeline which transformers had up to version 4: probabilities over
the context's tokens and [CLS]; the twelve likeliest spans of each window, at most fifteen tokens long, widened to whole
words; the same text found again adds to its score.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding

MAX_ANSWER_TOKENS = 15
CANDIDATES = 12
_CONTEXT = 1
_CLS = 0

Logits = NDArray[np.floating[Any]]


class Answer(msgspec.Struct, frozen=True):
    """A piece of the context: `answer == context[start:end]`, counted in code points."""

    answer: str
    start: int
    end: int
    score: float


@dataclass(frozen=True, slots=True)
class _Span:
    start: int
    end: int
    score: float


def best_answer(context: str, windows: Sequence[Encoding], logits: Sequence[tuple[Logits, Logits]]) -> Answer:
    """The likeliest answer over all windows; `logits` are each window's (start, end), without padding."""
    found: dict[str, _Span] = {}
    for window, (start, end) in zip(windows, logits, strict=True):
        for span in _spans(window, start, end):
            end_with_marks = _past_marks(context, span.end)
            text = context[span.start : end_with_marks].lower()
            known = found.get(text, _Span(span.start, end_with_marks, 0.0))
            found[text] = _Span(known.start, known.end, known.score + span.score)
    best = max(found.values(), key=lambda span: span.score)
    return Answer(context[best.start : best.end], best.start, best.end, best.score)


def _past_marks(context: str, place: int) -> int:
    """The first place from `place` on that begins a character of its own."""
    while place < len(context) and unicodedata.category(context[place]) == "Mn":
        place += 1
    return place


def _spans(window: Encoding, start: Logits, end: Logits) -> list[_Span]:
    """The window's likeliest spans in characters of the context, likeliest first."""
    in_context = np.array([sequence == _CONTEXT for sequence in window.sequence_ids])
    joint = np.outer(_probabilities(start, in_context), _probabilities(end, in_context))
    joint = np.tril(np.triu(joint), MAX_ANSWER_TOKENS - 1)
    order = np.argsort(-joint, axis=None, kind="stable")[:CANDIDATES]
    pairs = zip(*np.unravel_index(order, joint.shape), strict=True)
    return [
        _Span(*_characters(window, int(first), int(last)), score=float(joint[first, last]))
        for first, last in pairs
        if in_context[first] and in_context[last]
    ]


def _probabilities(logits: Logits, in_context: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Softmax over context and [CLS]; [CLS] itself then counts for nothing."""
    allowed = in_context.copy()
    allowed[_CLS] = True
    shifted = np.where(allowed, logits.astype(np.float64), -np.inf)
    weights = np.exp(shifted - shifted.max())
    probabilities: NDArray[np.float64] = weights / weights.sum()
    probabilities[_CLS] = 0.0
    return probabilities


def _characters(window: Encoding, first: int, last: int) -> tuple[int, int]:
    """Characters from the first token's word to the last token's."""
    words = window.token_to_word(first), window.token_to_word(last)
    if words[0] is None or words[1] is None:  # a tokenizer that knows no words
        return window.offsets[first][0], window.offsets[last][1]
    begin, end = window.word_to_chars(words[0], _CONTEXT), window.word_to_chars(words[1], _CONTEXT)
    if begin is None or end is None:
        return window.offsets[first][0], window.offsets[last][1]
    return begin[0], end[1]
