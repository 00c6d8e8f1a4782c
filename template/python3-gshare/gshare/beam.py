"""Beam search over any model that continues sequences step by step and says what it attends to.

A finished hypothesis Y of a source X is ranked as in GNMT (Wu et al. 2016, equation 14):

    s(Y, X) = log P(Y | X) / lp(Y) + cp(X, Y)
    lp(Y)   = ((5 + |Y|) / 6) ^ length_penalty
    cp(X, Y) = coverage_penalty * sum over i of log(min(sum over j of p(i, j), 1))

p(i, j) is the attention paid to source position i when output j was chosen. |Y| counts the marks of begin and end, as
NVIDIA's implementation does, with whose published checkpoints it should agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Decoding(Protocol):
    """A model on its way through some sentences, with a state for each of a sentence's hypotheses."""

    def step(self, tokens: Tensor, /) -> tuple[Tensor, Tensor]:
        """Append `tokens` [sentences, width] and say what may follow.

        Returns log probabilities [sentences, width, vocabulary] and the attention [sentences, width, source].
        """

    def select(self, rows: Tensor, sentences: Tensor | None, /) -> None:
        """Go on with these hypotheses: `rows` index the flat [sentences * width] states, some more than once.

        `sentences` index those that remain; None: all of them.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class BeamRules:
    """What a search looks for."""

    begin: int
    """Token before the first."""
    end: int
    """Token after the last."""
    width: int = 5
    """Hypotheses kept for each sentence at each step, finished ones among them."""
    length_penalty: float = 0.6
    coverage_penalty: float = 0.1


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """The best one found for a sentence."""

    tokens: tuple[int, ...]
    """Without the marks of begin and end."""
    score: float
    """s(Y, X) as above."""
    complete: bool
    """False: as long as allowed, so its end may have been forced."""


def beam_search(decoding: Decoding, source: Tensor, limits: Sequence[int], *, rules: BeamRules) -> list[Hypothesis]:
    """The best hypothesis of each sentence, in order.

    `source` [sentences, source] is true where a position holds a token of the sentence, false for padding. A hypothesis
    has at most as many tokens as its sentence's entry in `limits`; then its end is forced. Equal scores go to the
    earlier beam and the smaller token, so that the same input has the same output.
    """
    search = _Search(decoding, source, limits, rules=rules)
    while search.unfinished:
        search.advance()
    return search.results()


def top_stable(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row, in order, with their places; of equals the first come first.

    `topk` alone leaves it open which of several equals it takes.
    """
    more = values.topk(min(count + 1, values.shape[1]), dim=1)
    if values.shape[1] > count and bool((more.values[:, count] == more.values[:, count - 1]).any()):
        places = values.argsort(dim=1, descending=True, stable=True)[:, :count]
    else:
        places = more.indices[:, :count].sort(dim=1).values
        places = places.gather(1, values.gather(1, places).argsort(dim=1, descending=True, stable=True))
    return values.gather(1, places), places


class _Search:
    """Every tensor has the unfinished sentences first, then the beams; a finished sentence leaves all of them."""

    def __init__(self, decoding: Decoding, source: Tensor, limits: Sequence[int], *, rules: BeamRules) -> None:
        shape, device = (len(limits), rules.width), source.device
        self._decoding = decoding
        self._rules = rules
        self._found: dict[int, Hypothesis] = {}
        self._sentences = torch.arange(len(limits), device=device)
        self._limits = torch.tensor(limits, dtype=torch.long, device=device)
        self._tokens = torch.full((*shape, 1), rules.begin, device=device)
        self._lengths = torch.zeros(shape, dtype=torch.long, device=device)
        self._ended = torch.zeros(shape, dtype=torch.bool, device=device)
        self._scores = torch.full(shape, -torch.inf, device=device)
        self._scores[:, 0] = 0.0  # all beams start alike: only one may count
        self._coverage = (~source).float().unsqueeze(1).repeat(1, rules.width, 1)  # padding counts as covered

    @property
    def unfinished(self) -> bool:
        return len(self._sentences) > 0

    def results(self) -> list[Hypothesis]:
        return [self._found[sentence] for sentence in sorted(self._found)]

    def advance(self) -> None:
        """One more token for every hypothesis that has not ended."""
        log_probabilities, attention = self._decoding.step(self._tokens[:, :, -1])
        growing = ~self._ended
        self._lengths += growing
        self._coverage += attention * growing.unsqueeze(2)
        values, tokens = self._candidates(log_probabilities)
        totals = (self._scores.unsqueeze(2) + values).flatten(1)
        self._scores, places = top_stable(totals, self._rules.width)
        self._follow(places // values.shape[2], tokens.flatten(1).gather(1, places))

    def _candidates(self, log_probabilities: Tensor) -> tuple[Tensor, Tensor]:
        """For each hypothesis the best next tokens with their values, both [sentences, width, most of them].

        After its end a hypothesis stays as it is; at its limit it may only end.
        """
        shape, end = log_probabilities.shape, self._rules.end
        values, tokens = top_stable(log_probabilities.flatten(0, 1), min(self._rules.width, shape[2]))
        values, tokens = values.view(*shape[:2], -1), tokens.view(*shape[:2], -1)
        last_value = log_probabilities[:, :, end].masked_fill(self._ended, 0.0)
        last = self._ended | (self._limits < self._tokens.shape[2]).unsqueeze(1)
        values = values.masked_fill(last.unsqueeze(2), -torch.inf)
        values[:, :, 0] = torch.where(last, last_value, values[:, :, 0])
        return values, tokens.masked_fill(last.unsqueeze(2), end)

    def _follow(self, beams: Tensor, tokens: Tensor) -> None:
        """Make the chosen continuations the hypotheses, and take out the sentences that are through."""
        self._tokens = torch.cat((_reorder(self._tokens, beams), tokens.unsqueeze(2)), dim=2)
        self._coverage = _reorder(self._coverage, beams)
        self._lengths = self._lengths.gather(1, beams)
        self._ended = self._ended.gather(1, beams) | (tokens == self._rules.end)
        through = (self._ended | self._scores.isneginf()).all(1)
        rows = beams + torch.arange(len(beams), device=beams.device).unsqueeze(1) * self._rules.width
        if not bool(through.any()):
            self._decoding.select(rows.flatten(), None)
            return
        self._collect(through)
        remaining = (~through).nonzero().squeeze(1)
        self._keep(remaining)
        if self.unfinished:
            self._decoding.select(rows[remaining].flatten(), remaining)

    def _keep(self, remaining: Tensor) -> None:
        for name in ("_sentences", "_limits", "_tokens", "_lengths", "_ended", "_scores", "_coverage"):
            setattr(self, name, getattr(self, name)[remaining])

    def _collect(self, through: Tensor) -> None:
        rules, lengths = self._rules, self._lengths[through]
        penalties = ((5 + lengths + 1) / 6) ** rules.length_penalty
        covered = self._coverage[through].clamp(torch.finfo(torch.float32).tiny, 1.0).log().sum(2)
        scores, best = top_stable(self._scores[through] / penalties + rules.coverage_penalty * covered, 1)
        tokens = _reorder(self._tokens[through], best).squeeze(1).tolist()
        facts = (self._sentences[through], self._limits[through], lengths.gather(1, best).squeeze(1), scores.squeeze(1))
        for row, sentence, limit, length, score in zip(tokens, *(fact.tolist() for fact in facts), strict=True):
            self._found[sentence] = Hypothesis(tuple(row[1:length]), score, length <= limit)


def _reorder(values: Tensor, beams: Tensor) -> Tensor:
    """`values` [sentences, width, …] with each sentence's beams chosen anew."""
    return values[torch.arange(len(values), device=values.device).unsqueeze(1), beams]
