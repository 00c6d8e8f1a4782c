"""Beam search against an exhaustive one, over a small recurrent model that attends to its source."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
import torch
from gshare.beam import BeamRules, Hypothesis, beam_search, top_stable
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

BEGIN, END, VOCABULARY, SIZE = 0, 1, 5, 6
EVERYTHING = 400
"""More hypotheses than there are: 341 of at most 4 tokens."""


class Network:
    """Random weights: a state that tokens change, scores of the next token, attention to the source."""

    def __init__(self, seed: int) -> None:
        source = torch.Generator().manual_seed(seed)
        self.tokens, self.scores = (torch.randn(VOCABULARY, SIZE, generator=source) for _ in range(2))
        self.change = torch.randn(SIZE, SIZE, generator=source)


@dataclass
class Walk:
    """A `Decoding` of that network. `source` [sentences, source, size]."""

    network: Network
    source: Tensor
    mask: Tensor
    width: int

    def __post_init__(self) -> None:
        self.rows_seen: list[int] = []
        self.state = torch.zeros(len(self.source) * self.width, SIZE)

    def step(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        self.rows_seen.append(tokens.numel())
        self.state = torch.tanh(self.state @ self.network.change + self.network.tokens[tokens.flatten()])
        query = self.state.view(*tokens.shape, SIZE)
        attention = (query @ self.source.mT).masked_fill(~self.mask.unsqueeze(1), -torch.inf).softmax(-1)
        scores = (query + attention @ self.source) @ self.network.scores.T
        return scores.log_softmax(-1), attention

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        self.state = self.state[rows]
        if sentences is not None:
            self.source, self.mask = self.source[sentences], self.mask[sentences]


def sentences(lengths: Sequence[int], seed: int) -> tuple[Tensor, Tensor]:
    """Padded sources and their mask."""
    source = torch.randn(len(lengths), max(lengths), SIZE, generator=torch.Generator().manual_seed(seed))
    return source, torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


def search(network: Network, source: Tensor, mask: Tensor, limits: Sequence[int], rules: BeamRules) -> list[Hypothesis]:
    return beam_search(Walk(network, source, mask, rules.width), mask, limits, rules=rules)


def scores_of(network: Network, source: Tensor, outputs: Sequence[tuple[int, ...]], rules: BeamRules) -> list[float]:
    """s(Y, X) of outputs of one length, all at once; the formula of the module's first lines in plain numbers."""
    walk = Walk(network, source.unsqueeze(0), torch.ones(1, len(source), dtype=torch.bool), len(outputs))
    tokens = torch.tensor([[BEGIN, *output, END] for output in outputs])
    steps = [walk.step(tokens[:, place].unsqueeze(0)) for place in range(tokens.shape[1] - 1)]
    chosen = [values[0].gather(1, tokens[:, place + 1 : place + 2]) for place, (values, _) in enumerate(steps)]
    log_probabilities = torch.cat(chosen, dim=1).sum(1).tolist()
    coverage = torch.stack([attention[0] for _, attention in steps]).sum(0).tolist()
    length = tokens.shape[1]
    return [
        value / ((5 + length) / 6) ** rules.length_penalty
        + rules.coverage_penalty * sum(math.log(min(covered, 1.0)) for covered in row)
        for value, row in zip(log_probabilities, coverage, strict=True)
    ]


def exhaustive(network: Network, source: Tensor, limit: int, rules: BeamRules) -> tuple[float, tuple[int, ...]]:
    """The best of all outputs of at most `limit` tokens, with its score."""
    tokens = [token for token in range(VOCABULARY) if token != END]
    by_length = [list(itertools.product(tokens, repeat=length)) for length in range(limit + 1)]
    return max(pair for same in by_length for pair in zip(scores_of(network, source, same, rules), same, strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("length_penalty", "coverage_penalty"), [(0.6, 0.1), (0.0, 0.0), (1.5, 1.0)])
def test_a_wide_beam_finds_what_an_exhaustive_search_finds(
    seed: int, length_penalty: float, coverage_penalty: float
) -> None:
    rules = BeamRules(
        begin=BEGIN, end=END, width=EVERYTHING, length_penalty=length_penalty, coverage_penalty=coverage_penalty
    )
    network, (source, mask), limits = Network(seed), sentences([3, 1, 4], seed), [4, 2, 3]

    found = search(network, source, mask, limits, rules)

    for row, limit, hypothesis in zip(range(3), limits, found, strict=True):
        score, best = exhaustive(network, source[row][mask[row]], limit, rules)
        assert hypothesis.tokens == best
        assert hypothesis.score == pytest.approx(score, abs=1e-4)
        assert hypothesis.complete is (len(best) < limit)


def test_a_beam_of_one_is_the_greedy_search() -> None:
    network, (source, mask) = Network(5), sentences([4], 5)

    (found,) = search(network, source, mask, [12], BeamRules(begin=BEGIN, end=END, width=1))

    walk, output = Walk(network, source, mask, 1), [BEGIN]
    while output[-1] != END and len(output) <= 12:
        output.append(int(walk.step(torch.tensor([[output[-1]]]))[0].argmax()))
    assert found.tokens == tuple(token for token in output[1:] if token != END)


def test_sentences_searched_together_get_what_each_gets_alone() -> None:
    rules, lengths, limits = BeamRules(begin=BEGIN, end=END), [7, 2, 5, 1, 9], [24, 14, 6, 12, 0]
    network, (source, mask) = Network(6), sentences(lengths, 6)

    together = search(network, source, mask, limits, rules)

    for row, (length, limit) in enumerate(zip(lengths, limits, strict=True)):
        (alone,) = search(network, source[row : row + 1, :length], mask[row : row + 1, :length], [limit], rules)
        assert together[row].tokens == alone.tokens
        assert together[row].score == pytest.approx(alone.score, abs=1e-4)


def test_a_sentence_that_is_through_costs_nothing_more() -> None:
    network, (source, mask), rules = Network(7), sentences([3, 3], 7), BeamRules(begin=BEGIN, end=END, width=4)
    walk = Walk(network, source, mask, rules.width)

    beam_search(walk, mask, [0, 9], rules=rules)

    assert walk.rows_seen[:2] == [8, 4]


class Undecided:
    """Finds every token equally good, always."""

    def step(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        return torch.full((*tokens.shape, VOCABULARY), -math.log(VOCABULARY)), torch.ones(*tokens.shape, 1)

    def select(self, rows: Tensor, sentences: Tensor | None) -> None: ...


def test_equal_scores_go_to_the_earlier_beam_and_the_smaller_token() -> None:
    rules = BeamRules(begin=BEGIN, end=VOCABULARY - 1, width=3)

    (found,) = beam_search(Undecided(), torch.ones(1, 1, dtype=torch.bool), [3], rules=rules)

    assert found.tokens == (0, 0, 0)
    assert not found.complete


@given(st.lists(st.lists(st.integers(0, 3), min_size=6, max_size=6), min_size=1, max_size=4), st.integers(1, 6))
def test_the_largest_come_in_order_and_of_equals_the_first_comes_first(rows: list[list[int]], count: int) -> None:
    values, places = top_stable(torch.tensor(rows, dtype=torch.float32), count)

    for row, best, where in zip(rows, values.tolist(), places.tolist(), strict=True):
        expected = sorted(range(6), key=lambda place: (-row[place], place))[:count]
        assert where == expected
        assert best == [row[place] for place in expected]
