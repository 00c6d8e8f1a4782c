"""Metadata of a JPEG file never reaches the decoder."""

from __future__ import annotations

import struct

import pytest
from gshare.errors import BadInput
from gshare.inputs.image_jpeg import MAX_SCAN_PIXELS, check_scans, split_jpeg
from PIL import Image

from tests.pictures import decoded, encoded, photograph, same, turned

JFIF_END = 20
"""Where the first segment of Pillow's files ends."""


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return photograph()


def segment(marker: int, content: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(content) + 2) + content


def with_segments(data: bytes, *segments: bytes) -> bytes:
    return data[:2] + b"".join(segments) + data[2:]


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK", "YCbCr"])
def test_pixels_are_the_same_without_metadata(photo: Image.Image, mode: str) -> None:
    plain = encoded(photo.convert(mode), "JPEG")
    noisy = with_segments(plain, segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0<x/>"), segment(0xFE, b"comment"))

    assert split_jpeg(noisy)[0] == split_jpeg(plain)[0]
    assert same(decoded(noisy), decoded(plain))


def test_the_first_exif_block_is_handed_back_and_all_are_taken_out(photo: Image.Image) -> None:
    blocks = [b"Exif\0\0" + bytes([n]) * 65_000 for n in range(100)]
    data = with_segments(encoded(photo, "JPEG"), *(segment(0xE1, block) for block in blocks))

    rest, exif = split_jpeg(data)

    assert exif == blocks[0]
    assert b"Exif" not in rest


def test_junk_between_segments_hides_nothing(photo: Image.Image) -> None:
    plain = encoded(photo, "JPEG")
    junk = b"junk\xff\xff\xff\x00\xff\xd0\xff\x01"
    hidden = plain[:JFIF_END] + junk + segment(0xE1, b"Exif\0\0hidden") + plain[JFIF_END:]

    assert split_jpeg(hidden) == (split_jpeg(plain)[0], b"Exif\0\0hidden")
    assert same(decoded(hidden), decoded(plain))


@pytest.mark.parametrize("data", [b"\xff\xd8", b"\xff\xd8\xff", b"\xff\xd8\xff\xe1", b"\xff\xd8\xff\xe1\x00\x00", b""])
def test_a_file_that_is_only_a_beginning_stays_one(data: bytes) -> None:
    assert len(split_jpeg(data)[0]) <= len(data)


def test_a_progressive_file_is_read(photo: Image.Image) -> None:
    data = encoded(photo, "JPEG", progressive=True)

    assert data.count(b"\xff\xda") > 5
    assert decoded(data).size == photo.size


def test_scans_that_would_decode_a_large_picture_hundreds_of_times_are_refused() -> None:
    with pytest.raises(BadInput, match=r"has 200 scans of 12,000,000 pixels; at most 83 of that size"):
        check_scans(b"\xff\xda.." * 200, pixels=12_000_000)
    check_scans(b"\xff\xda.." * 20, pixels=MAX_SCAN_PIXELS // 20)


@pytest.mark.parametrize("content", [b"nonsense", b"II*\x00\xff\xff\xff\xff", b"", b"MM\x00*\x00\x00\x00\x08\xff\xff"])
def test_a_broken_exif_block_says_nothing(photo: Image.Image, content: bytes) -> None:
    plain = encoded(photo, "JPEG")

    assert same(decoded(with_segments(plain, segment(0xE1, b"Exif\0\0" + content))), decoded(plain))


def test_orientation_is_found_in_a_block_of_either_byte_order(photo: Image.Image) -> None:
    stored, _ = turned(photo, 6)
    plain = encoded(stored, "JPEG")
    entry = {"<": b"II*\x00", ">": b"MM\x00*"}
    for order, head in entry.items():
        block = head + struct.pack(f"{order}LHHHLHHL", 8, 1, 0x0112, 3, 1, 6, 0, 0)
        found = decoded(with_segments(plain, segment(0xE1, b"Exif\0\0" + block)))
        assert same(found, decoded(plain).transpose(Image.Transpose.ROTATE_270))
