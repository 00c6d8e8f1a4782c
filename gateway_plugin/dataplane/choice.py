"""Which replica gets the next request. Pure: numbers in, an index out."""

from __future__ import annotations

from collections.abc import Sequence


def choose(loads: Sequence[int], limits: Sequence[int], turns: Sequence[int]) -> int | None:
    """Index of the replica with the fewest requests in flight among those with room; None: none has room.

    `loads` are requests in flight, `limits` the most each takes (0: not to be used now), `turns` the number of the
    choice that picked each one last. Equal loads: the one that waited longest for its turn, then the first.
    """
    best: int | None = None
    for index, load in enumerate(loads):
        if load >= limits[index]:
            continue
        if best is None or (load, turns[index]) < (loads[best], turns[best]):
            best = index
    return best
