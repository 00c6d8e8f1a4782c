"""What the directories of a TIFF file declare, checked before a reader makes objects and buffers of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from PIL.TiffImagePlugin import TiffImageFile

from gshare.errors import BadInput, TooLarge

MAX_TAGS = 1_000
MAX_TAG_VALUES = 200_000
"""Values of one tag. The longest honest list has the place of every strip or tile; each becomes a Python object."""
_TILE_WIDTH, _TILE_LENGTH = 322, 323
_DIRECTORIES = frozenset((34665, 34853, 40965))
"""EXIF, GPS and interoperability: tags that hold the place of another directory."""
_ONE_OBJECT = frozenset((1, 2, 7))
"""Bytes, text and undefined: however long, one object."""
_BYTES_OF_TYPE = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4, 13: 4, 16: 8}
_SAMPLES_MAX = 8


@dataclass(frozen=True, slots=True)
class _Tag:
    number: int
    type: int
    count: int
    value: int
    """Its first value, if that is an integer that lies in the entry itself."""


class _Directories:
    """Reads the directories of a classic or big TIFF file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._big = data[2:4] in (b"+\x00", b"\x00+")
        self._word = 8 if self._big else 4

    def first(self) -> int:
        """Place of the first directory."""
        return self._integer(8 if self._big else 4, self._word)

    def tags(self, place: int) -> Iterator[_Tag]:
        """Raises: BadInput if there are too many; what lies beyond the end of the file reads as zero."""
        width = 8 if self._big else 2
        count = self._integer(place, width)
        if count > MAX_TAGS:
            raise BadInput(f"the TIFF picture has {count:,} tags in one directory; at most {MAX_TAGS:,} are read")
        for entry in range(place + width, place + width + count * (4 + 2 * self._word), 4 + 2 * self._word):
            yield self._tag(entry)

    def _tag(self, place: int) -> _Tag:
        kind = self._integer(place + 2, 2)
        value = self._integer(place + 4 + self._word, min(_BYTES_OF_TYPE.get(kind, 0), self._word))
        return _Tag(self._integer(place, 2), kind, self._integer(place + 4, self._word), value)

    def _integer(self, place: int, width: int) -> int:
        return int.from_bytes(self._data[place : place + width], "little" if self._data[:1] == b"I" else "big")


def check_directories(data: bytes, *, max_pixels: int) -> None:
    """Raises: BadInput for lists that no picture needs, TooLarge for a tile of more than `max_pixels`."""
    file = _Directories(data)
    todo, seen = [file.first()], set[int]()
    tile = {_TILE_WIDTH: 1, _TILE_LENGTH: 1}
    while todo:
        place = todo.pop()
        for tag in () if place in seen else file.tags(place):
            _check_count(tag)
            if tag.number in _DIRECTORIES and len(seen) < len(_DIRECTORIES):
                todo.append(tag.value)
            if tag.number in tile:
                tile[tag.number] = max(tile[tag.number], tag.value)
        seen.add(place)
    if tile[_TILE_WIDTH] * tile[_TILE_LENGTH] > max_pixels:
        sides = f"{tile[_TILE_WIDTH]} × {tile[_TILE_LENGTH]}"
        raise TooLarge(f"a tile of the TIFF picture has {sides} pixels; at most {max_pixels:,} are decoded")


def check_blocks(image: TiffImageFile) -> None:
    """Raises: BadInput if strips or tiles lie upon each other, so that pixels would be decoded many times over."""
    boxes = [block.extents for block in image.tile if block.extents is not None]
    pixels = sum((right - left) * (bottom - top) for left, top, right, bottom in boxes)
    if pixels > _SAMPLES_MAX * image.width * image.height:
        raise BadInput(f"the TIFF picture is broken: its {len(image.tile):,} strips or tiles cover it many times over")


def _check_count(tag: _Tag) -> None:
    if tag.type not in _ONE_OBJECT and tag.count > MAX_TAG_VALUES:
        raise BadInput(
            f"tag {tag.number} of the TIFF picture has {tag.count:,} values; at most {MAX_TAG_VALUES:,} are read"
        )
