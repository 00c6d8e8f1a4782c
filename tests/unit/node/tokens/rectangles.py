"""Random sets of shares that placement could have made: a rectangle of time × units, cut into pieces."""

from __future__ import annotations

import random
from dataclasses import dataclass

from gateway_plugin.node.tokens.rule import TokenShare

_PERMILLE = 1000


@dataclass(frozen=True, slots=True)
class Rectangle:
    """`width` permille of the time on units `low` to `low + height - 1`."""

    width: int
    low: int
    height: int


def cut(rng: random.Random, *, units: int, pieces: int, narrowest: int) -> list[Rectangle]:
    """The whole device, cut into at most so many pieces, none narrower than so many permille."""
    whole = [Rectangle(_PERMILLE, 0, units)]
    for _ in range(pieces - 1):
        divisible = [one for one in whole if one.height > 1 or one.width >= 2 * narrowest]
        if not divisible:
            break
        one = rng.choice(divisible)
        whole.remove(one)
        whole += _halves(rng, one, narrowest)
    return whole


def _halves(rng: random.Random, one: Rectangle, narrowest: int) -> list[Rectangle]:
    if one.height > 1 and (one.width < 2 * narrowest or rng.random() < 0.5):
        low = rng.randint(1, one.height - 1)
        return [Rectangle(one.width, one.low, low), Rectangle(one.width, one.low + low, one.height - low)]
    left = rng.randint(narrowest, one.width - narrowest)
    return [Rectangle(left, one.low, one.height), Rectangle(one.width - left, one.low, one.height)]


def share(rng: random.Random, one: Rectangle, *, shrink: float = 1.0) -> TokenShare:
    """Its request is the rectangle's width (less what it is shrunk by); its limit is that, 1, or something between."""
    request = one.width / _PERMILLE * shrink
    limit = rng.choice((request, 1.0, rng.uniform(request, 1.0)))
    return TokenShare(tuple(range(one.low, one.low + one.height)), request, limit)
