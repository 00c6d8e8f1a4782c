"""TIFF files that declare more than a picture needs are refused before objects are made of it."""

from __future__ import annotations

import struct
import tracemalloc

import numpy as np
import pytest
from gshare.errors import BadInput, GshareError, TooLarge
from gshare.inputs.image_tiff import MAX_TAG_VALUES, check_directories
from PIL import Image

from tests.pictures import decoded, encoded, photograph, same, tiff_file, tiff_tail

SHORT, LONG, RATIONAL = 3, 4, 5
WIDTH, LENGTH, BITS, COMPRESSION, PHOTOMETRIC, STRIPS, ROWS, SIZES = 256, 257, 258, 259, 262, 273, 278, 279
TILE_WIDTH, TILE_LENGTH, EXIF = 322, 323, 34665
MAX_PIXELS = 1_000_000


def shades(*values: int, bits: int, photometric: int = 1, order: str = "<") -> bytes:
    """A grey TIFF of one row, as wide as there are values, of 12 or 16 bits each."""
    packed = struct.pack(f"{order}{len(values)}H", *values)
    if bits == 12:
        packed = bytes((values[0] >> 4, (values[0] & 15) << 4 | values[1] >> 8, values[1] & 255))
    return tiff_file(
        *((WIDTH, LONG, 1, len(values)), (LENGTH, LONG, 1, 1), (BITS, LONG, 1, bits), (COMPRESSION, LONG, 1, 1)),
        *((PHOTOMETRIC, LONG, 1, photometric), (STRIPS, LONG, 1, tiff_tail(8)), (ROWS, LONG, 1, 1)),
        (SIZES, LONG, 1, len(packed)),
        tail=packed,
        order=order,
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (shades(0x1234, 0xFFFF, bits=16), [0x12, 0xFF]),
        (shades(0x1234, 0xFFFF, bits=16, order=">"), [0x12, 0xFF]),
        (shades(0x1234, 0xFFFF, bits=16, photometric=0), [0xFF - 0x12, 0]),
        (shades(0x123, 0xFFF, bits=12), [0x12, 0xFF]),
    ],
    ids=["little-endian", "big-endian", "zero is white", "12 bits"],
)
def test_deep_grey_is_read_as_its_tags_say(data: bytes, expected: list[int]) -> None:
    assert np.asarray(decoded(data))[0, :, 0].tolist() == expected


def test_sixteen_bit_colour_is_read_by_its_high_byte() -> None:
    bits, colours = struct.pack("<3H", 16, 16, 16), struct.pack("<3H", 0x1234, 0xABCD, 0xFFFF)
    place = tiff_tail(9)
    data = tiff_file(
        *((WIDTH, LONG, 1, 1), (LENGTH, LONG, 1, 1), (BITS, SHORT, 3, place), (COMPRESSION, LONG, 1, 1)),
        *((PHOTOMETRIC, LONG, 1, 2), (STRIPS, LONG, 1, place + 6), (277, LONG, 1, 3), (ROWS, LONG, 1, 1)),
        (SIZES, LONG, 1, 6),
        tail=bits + colours,
    )

    assert decoded(data).getpixel((0, 0)) == (0x12, 0xAB, 0xFF)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_samples_without_a_usual_meaning_in_eight_bits_are_refused(mode: str) -> None:
    with pytest.raises(GshareError, match="8 or 16 bits") as caught:
        decoded(encoded(Image.new(mode, (4, 4)), "TIFF"))
    assert caught.value.status == 415


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("kind", [SHORT, LONG, RATIONAL])
def test_a_tag_of_millions_of_values_is_refused_before_they_are_objects(order: str, kind: int) -> None:
    data = tiff_file((BITS, kind, 5_000_000, tiff_tail(1)), tail=bytes(40_000_000), order=order)
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="tag 258 of the TIFF picture has 5,000,000 values"):
            decoded(data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_such_a_tag_in_a_directory_within_is_found_as_well() -> None:
    inner = struct.pack("<HHHLLL", 1, 1, RATIONAL, MAX_TAG_VALUES + 1, 0, 0)
    data = tiff_file((WIDTH, LONG, 1, 1), (EXIF, LONG, 1, tiff_tail(2)), tail=inner)

    with pytest.raises(BadInput, match="200,001 values"):
        check_directories(data, max_pixels=MAX_PIXELS)


def test_a_big_tiff_is_checked_likewise() -> None:
    entry = struct.pack(">HHQQ", BITS, SHORT, 5_000_000, 0)
    data = b"MM\x00+" + struct.pack(">HHQQ", 8, 0, 16, 1) + entry + struct.pack(">Q", 0)

    with pytest.raises(BadInput, match="5,000,000 values"):
        check_directories(data, max_pixels=MAX_PIXELS)


def test_a_directory_that_points_at_itself_ends() -> None:
    check_directories(tiff_file((EXIF, LONG, 1, 8)), max_pixels=MAX_PIXELS)


def test_more_tags_than_any_picture_has_are_refused() -> None:
    with pytest.raises(BadInput, match="65,535 tags in one directory"):
        decoded(b"II*\x00\x08\x00\x00\x00\xff\xff")


def test_a_tile_far_larger_than_its_picture_is_refused() -> None:
    data = tiff_file(
        (WIDTH, LONG, 1, 8), (LENGTH, LONG, 1, 8), (TILE_WIDTH, LONG, 1, 9000), (TILE_LENGTH, LONG, 1, 9000)
    )

    with pytest.raises(TooLarge, match="9000 × 9000 pixels"):
        decoded(data)


def test_strips_that_lie_upon_each_other_are_refused() -> None:
    strips = 150_000
    place = tiff_tail(6)
    data = tiff_file(
        *((WIDTH, LONG, 1, 1000), (LENGTH, LONG, 1, 1000), (BITS, LONG, 1, 8), (PHOTOMETRIC, LONG, 1, 1)),
        *((STRIPS, LONG, strips, place), (ROWS, LONG, 1, 999)),
        tail=struct.pack(f"<{strips}L", *[place] * strips) + bytes(1_000_000),
    )

    with pytest.raises(BadInput, match="150,000 strips or tiles cover it many times over"):
        decoded(data)


@pytest.mark.parametrize("size", [(64, 43), (300, 200)])
def test_honest_files_pass(size: tuple[int, int]) -> None:
    photo = photograph(*size)

    assert same(decoded(encoded(photo, "TIFF", big_tiff=True)), photo)
    assert same(decoded(encoded(photo, "TIFF", strip_size=100)), photo)
