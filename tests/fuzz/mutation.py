"""Damage to bytes: what a bad line, a bad disk or a bad mind does to a file."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

NUMBERS = (0, 1, -1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1)
HEAD_BYTES = 64
"""Where formats keep what they promise."""
LARGEST = 2_000_000

Mutation = Callable[[bytearray, random.Random], None]


def mutated(data: bytes, source: random.Random) -> bytes:
    """The bytes with one to a few dozen changes; half of them in the head."""
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 1, 2, 3, 8, 24))):
        source.choice(MUTATIONS)(changed, source)
        del changed[LARGEST:]
    return bytes(changed)


def noise(source: random.Random, most: int) -> bytes:
    """Up to so many bytes without any sense."""
    return source.randbytes(source.choice((1, 2, 3, 16, 100, most)))


def _place(data: bytearray, source: random.Random) -> int:
    end = min(len(data), HEAD_BYTES) if source.random() < 0.5 else len(data)
    return source.randrange(end) if end else 0


def _flip(data: bytearray, source: random.Random) -> None:
    if data:
        data[_place(data, source)] ^= 1 << source.randrange(8)


def _number(data: bytearray, source: random.Random) -> None:
    size, number, place = source.choice((1, 2, 4, 8)), source.choice(NUMBERS), _place(data, source)
    raw = struct.pack("<q", number if number < 2**63 else -1)[:size]
    data[place : place + size] = raw if source.random() < 0.5 else raw[::-1]


def _cut(data: bytearray, source: random.Random) -> None:
    del data[_place(data, source) :]


def _remove(data: bytearray, source: random.Random) -> None:
    place = _place(data, source)
    del data[place : place + source.choice((1, 2, 4, 8, 100))]


def _insert(data: bytearray, source: random.Random) -> None:
    place = _place(data, source)
    data[place:place] = noise(source, 1000)


def _repeat(data: bytearray, source: random.Random) -> None:
    place, size = _place(data, source), source.choice((1, 4, 64, 1000))
    data[place:place] = data[place : place + size] * source.choice((1, 2, 50))


def _blank(data: bytearray, source: random.Random) -> None:
    place, size = _place(data, source), source.choice((1, 4, 64, 1000))
    data[place : place + size] = bytes([source.choice((0, 255))]) * size


def _append(data: bytearray, source: random.Random) -> None:
    data += noise(source, 10_000)


MUTATIONS: tuple[Mutation, ...] = (_flip, _number, _number, _cut, _remove, _insert, _repeat, _blank, _append)
