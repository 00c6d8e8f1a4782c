"""A short run of the fuzzer; the long one is `python -m tests.fuzz`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.shooting import SETTINGS, shoot
from tests.fuzz.shots import shot
from tests.tiny_functions import TINY_FUNCTIONS, TinyFunction

SHOTS = 150
CHOSEN = [function for function in TINY_FUNCTIONS if function.name in ("resnet50", "bert", "rnnt")]
"""A picture, a text, a sound; each start of a replica takes seconds."""


@pytest.fixture(params=CHOSEN, ids=lambda function: function.name)
def function(request: pytest.FixtureRequest) -> Iterator[TinyFunction]:
    yield request.param


def test_no_body_breaks_a_function_or_what_it_answers_next(function: TinyFunction) -> None:
    result = shoot(function, seed=7, numbers=range(SHOTS), env=function.env() | SETTINGS)

    assert result.complaints == []
    assert result.shots == SHOTS
    assert {status // 100 for _, status in result.answers} == {2, 4}


def test_a_shot_can_be_sent_again(function: TinyFunction) -> None:
    once, again = (shot(function, seed=7, number=23) for _ in range(2))

    assert once == again
    assert shot(function, seed=8, number=23) != once
