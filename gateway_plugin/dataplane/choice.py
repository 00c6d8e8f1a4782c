"""Which replica gets the next request. Pure: numbers in, an index out."""

from __future__ import annotations

from collections.abc import Sequence


def choose(replicas: Sequence[tuple[int, int, int]]) -> int | None:
    """Index of the replica with the fewest requests in flight among those with room; None: none has room.

    Each is (requests in flight, most it takes, number of the choice that picked it last); most 0: not to be used now.
    Equally busy: the one whose turn was longest ago, then the first.
    """
    best: int | None = None
    least = (0, 0)
    for index, (load, limit, turn) in enumerate(replicas):
        if load < limit and (best is None or (load, turn) < least):
            best, least = index, (load, turn)
    return best
