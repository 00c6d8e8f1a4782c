"""Greedy decoding: at each step of the encoder the best symbols, until the blank is best; many utterances at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from .alphabet import BLANK
from .model import Rnnt

MAX_SYMBOLS_PER_STEP = 30


@dataclass(slots=True)
class _Hypothesis:
    """How far one utterance is."""

    steps: int
    step: int = 0
    here: int = 0
    """Symbols written at this step."""
    symbols: list[int] = field(default_factory=list)

    @property
    def is_open(self) -> bool:
        return self.step < self.steps

    def take(self, symbol: int) -> bool:
        """Go on by the best symbol; whether it was one to write."""
        written = symbol != BLANK
        if written:
            self.symbols.append(symbol)
            self.here += 1
        if not written or self.here == MAX_SYMBOLS_PER_STEP:
            self.step, self.here = self.step + 1, 0
        return written


def transcribe(model: Rnnt, features: torch.Tensor, lengths: torch.Tensor) -> list[list[int]]:
    """The symbols heard in each of B utterances: features B × T × FEATURES, padded, and each one's frames.

    Each utterance goes at its own pace, so it is decoded as it would be alone: one round is one score of the joint
    network for every utterance that is not at its end.
    """
    steps, step_counts = model.encoder(features, lengths)
    heard = model.joint.heard(steps)
    predicted, (hidden, cell) = model.prediction.start(len(features))
    expected = model.joint.expected(predicted)
    hypotheses = [_Hypothesis(count) for count in step_counts.tolist()]
    rows = [row for row, hypothesis in enumerate(hypotheses) if hypothesis.is_open]
    while rows:
        places = [hypotheses[row].step for row in rows]
        best = model.joint(heard[rows, places], expected[rows]).argmax(-1)
        written = [i for i, symbol in enumerate(best.tolist()) if hypotheses[rows[i]].take(symbol)]
        if written:
            where = [rows[i] for i in written]
            predicted, (new_hidden, new_cell) = model.prediction(best[written], (hidden[:, where], cell[:, where]))
            expected[where] = model.joint.expected(predicted)
            hidden[:, where], cell[:, where] = new_hidden, new_cell
        rows = [row for row in rows if hypotheses[row].is_open]
    return [hypothesis.symbols for hypothesis in hypotheses]
