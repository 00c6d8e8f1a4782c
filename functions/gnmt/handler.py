"""GNMT: an English sentence in, a German one out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from gshare.beam import BeamRules, Hypothesis, beam_search
from gshare.context import Context
from gshare.errors import BadInput, ConfigError
from gshare.handler import Handler
from gshare.request import Request
from gshare.tensors import Datatype, Signature, TensorSpec

from .model import BEGIN, END, Gnmt, GnmtConfig, untrained
from .sentences import Body, Sentences, cut, read_sentences
from .vocabulary import load_vocabulary

MODEL = "gnmt"
SENTENCES_AT_ONCE = 32
POSITIONS_AT_ONCE = 2048
"""Source positions, padding included, in one search: many or long sentences must not take any amount of memory."""
EXAMPLE = Body(text="One model seldom fills a GPU.")
SIGNATURE = Signature(
    outputs=(
        TensorSpec("translation", Datatype.BYTES),
        TensorSpec("score", Datatype.FP32),
        TensorSpec("truncated", Datatype.BOOL),
    )
)

Output = tuple[Sentences, list[Hypothesis]]


class Translator(Handler[Sentences, Output]):
    """Checkpoints in NVIDIA's layout; `random:` weights have the same shape and read and write single characters."""

    def load(self, context: Context) -> None:
        self.weights = context.weights.text
        self.untrained = context.weights.is_random
        config = _config(context)
        self.rules = BeamRules(
            begin=BEGIN,
            end=END,
            width=config.beam_size,
            length_penalty=config.length_penalty,
            coverage_penalty=config.coverage_penalty,
        )
        self.vocabulary = load_vocabulary(context.weights, config)
        self.model = context.build(lambda: (untrained if self.untrained else Gnmt)(config))

    def example(self) -> Sentences:
        return cut(EXAMPLE, self.vocabulary)

    def decode(self, request: Request) -> Sentences:
        return read_sentences(request, self.vocabulary)

    def batch_key(self, item: Sentences) -> int:
        """Sentences of about one length go together: a batch takes as long as its longest."""
        return item.longest.bit_length()

    def forward(self, items: list[Sentences]) -> list[Output]:
        rows = [row for item in items for row in item.rows]
        found: dict[int, Hypothesis] = {}
        for group in _groups(rows):
            found.update(zip(group, self._search([rows[place] for place in group]), strict=True))
        places = iter(range(len(rows)))
        return [(item, [found[next(places)] for _ in item.rows]) for item in items]

    def encode(self, output: Output, request: Request) -> dict[str, Any]:
        sentences, hypotheses = output
        answers = [self._answer(found) for found in hypotheses]
        answer: dict[str, Any] = {"translations": answers} if sentences.several else answers[0]
        return {**answer, "model": MODEL, "weights": self.weights}

    def signature(self) -> Signature:
        return SIGNATURE

    def encode_tensors(self, output: Output, request: Request) -> Mapping[str, Any]:
        sentences, hypotheses = output
        if sentences.several:
            raise BadInput(
                "texts: an item of a tensor is one sentence; send several items, or ask for the output reply"
            )
        return self._answer(hypotheses[0])

    def _answer(self, found: Hypothesis) -> dict[str, Any]:
        translation = self.vocabulary.decode(found.tokens)
        return {"translation": translation, "score": found.score, "truncated": not found.complete}

    def _search(self, rows: Sequence[Sequence[int]]) -> list[Hypothesis]:
        translation = self.model.start(rows, self.rules.width)
        limits = [self._limit(len(row) - 2) for row in rows]
        return beam_search(translation, translation.source.mask, limits, rules=self.rules)

    def _limit(self, source_tokens: int) -> int:
        """Most tokens of a translation. Random weights never end, so theirs get a real one's usual length."""
        return source_tokens if self.untrained else 2 * source_tokens + 10


def _config(context: Context) -> GnmtConfig:
    try:
        return msgspec.convert(context.model_config(), GnmtConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{context.weights.text}: the model's settings cannot be used: {error}") from error


def _groups(rows: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Places of rows that are searched together: of like length, within the limits above."""
    group: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: len(rows[place])):
        if group and (len(group) == SENTENCES_AT_ONCE or (len(group) + 1) * len(rows[place]) > POSITIONS_AT_ONCE):
            yield group
            group = []
        group.append(place)
    if group:
        yield group
