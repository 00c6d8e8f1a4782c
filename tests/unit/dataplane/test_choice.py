"""The rule of replica choice."""

from __future__ import annotations

import pytest

from gateway_plugin.dataplane.choice import choose

CASES = {
    "nobody to choose from": ([], None),
    "the least busy one": ([(3, 16, 0), (1, 16, 0), (2, 16, 0)], 1),
    "equally busy: the one whose turn was longest ago": ([(1, 16, 9), (1, 16, 4), (1, 16, 7)], 1),
    "equally busy, equal turns: the first": ([(0, 16, 0), (0, 16, 0)], 0),
    "a full one is passed over though it is the least busy": ([(2, 2, 0), (5, 16, 0)], 1),
    "one over its limit, as two workers may make it, is full": ([(3, 2, 0)], None),
    "one that is avoided has no room": ([(0, 0, 0), (4, 16, 0)], 1),
    "all full": ([(1, 1, 0), (2, 2, 0)], None),
}


@pytest.mark.parametrize("case", CASES)
def test_choice(case: str) -> None:
    replicas, expected = CASES[case]
    assert choose(replicas) == expected


def test_sequential_requests_go_round() -> None:
    turns = [0, 0, 0]
    chosen = []
    for turn in range(1, 7):
        index = choose([(0, 16, last) for last in turns])
        assert index is not None
        turns[index] = turn
        chosen.append(index)
    assert chosen == [0, 1, 2, 0, 1, 2]
