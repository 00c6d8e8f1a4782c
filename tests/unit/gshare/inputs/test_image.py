"""Every kind of picture file to upright RGB; everything else refused in words."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import threading
import zlib
from typing import Any

import numpy as np
import pytest
from gshare.errors import BadInput, GshareError, TooLarge, UnsupportedMedia
from gshare.inputs import image
from gshare.inputs.image import MAX_PIXELS, decoded_image
from gshare.inputs.image_memory import PixelBudget
from PIL import Image

from tests.pictures import decoded, difference, encoded, photograph, png_bomb, png_chunk, png_file, same, turned

KINDS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
LOSSLESS = {"WEBP": {"lossless": True, "exact": True}}


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    return photograph()


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "BMP", "TIFF"])
def test_a_lossless_file_is_decoded_exactly(photo: Image.Image, kind: str) -> None:
    assert same(decoded(encoded(photo, kind, **LOSSLESS.get(kind, {}))), photo)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_a_lossy_file_is_decoded_as_pillow_does(photo: Image.Image, kind: str) -> None:
    data = encoded(photo, kind, quality=90)

    assert same(decoded(data), Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(("PNG", mode) for mode in ("L", "1", "P", "RGBA", "LA")),
        *(("TIFF", mode) for mode in ("L", "1", "P", "RGBA", "LA", "CMYK", "YCbCr")),
        *(("BMP", mode) for mode in ("L", "1", "P")),
        *(("JPEG", mode) for mode in ("L", "CMYK", "YCbCr")),
        *(("WEBP", mode) for mode in ("L", "RGBA")),
    ],
)
def test_every_way_to_store_colours_gives_rgb(photo: Image.Image, kind: str, mode: str) -> None:
    data = encoded(photo.convert(mode), kind, **LOSSLESS.get(kind, {}))

    assert same(decoded(data), Image.open(io.BytesIO(data)).convert("RGB"))


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "group4"])
def test_compressed_tiff_is_decoded(photo: Image.Image, compression: str) -> None:
    stored = photo.convert("1") if compression == "group4" else photo

    found = decoded(encoded(stored, "TIFF", compression=compression))

    assert difference(found, stored.convert("RGB")) <= (120 if compression == "jpeg" else 0)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_transparent_parts_are_white_and_half_transparent_ones_mixed(kind: str) -> None:
    picture = Image.new("RGBA", (3, 1), (200, 0, 0, 255))
    picture.putpixel((1, 0), (10, 20, 30, 0))
    picture.putpixel((2, 0), (0, 100, 200, 128))

    found = decoded(encoded(picture, kind, **LOSSLESS.get(kind, {})))

    assert [found.getpixel((x, 0)) for x in range(2)] == [(200, 0, 0), (255, 255, 255)]
    assert np.abs(np.asarray(found)[0, 2] - np.array([127, 177, 227])).max() <= 1


def test_a_transparent_colour_of_a_palette_is_white() -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([1, 2, 3, 200, 100, 50])
    picture.putpixel((1, 0), 1)

    found = decoded(encoded(picture, transparency=0))

    assert [found.getpixel((0, 0)), found.getpixel((1, 0))] == [(255, 255, 255), (200, 100, 50)]


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_sixteen_bit_grey_keeps_its_shades(kind: str) -> None:
    values = np.array([[0, 256, 32768, 65535]], np.uint16)

    found = decoded(encoded(Image.fromarray(values), kind))

    assert np.asarray(found)[0, :, 0].tolist() == [0, 1, 128, 255]


def test_a_transparent_shade_of_sixteen_bit_grey_is_white() -> None:
    rows = zlib.compress(b"\x00" + struct.pack(">HH", 300, 301))
    data = png_file(*(2, 1, png_chunk(b"tRNS", struct.pack(">H", 300)), png_chunk(b"IDAT", rows)), depth=16, colours=0)

    assert np.asarray(decoded(data))[0, :, 0].tolist() == [255, 1]


@pytest.mark.parametrize("key", [(0, 0, 0), (65535, 1, 2)])
def test_sixteen_bit_colour_is_read_by_its_high_byte_whatever_colour_is_called_transparent(
    key: tuple[int, int, int],
) -> None:
    rows = zlib.compress(b"\x00" + struct.pack(">3H", 0x1234, 0xABCD, 0xFFFF))
    data = png_file(
        *(1, 1, png_chunk(b"tRNS", struct.pack(">3H", *key)), png_chunk(b"IDAT", rows)), depth=16, colours=2
    )

    assert decoded(data).getpixel((0, 0)) == (0x12, 0xAB, 0xFF)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_a_picture_turned_by_its_exif_tag_is_turned_back(photo: Image.Image, kind: str, orientation: int) -> None:
    stored, exif = turned(photo, orientation)

    assert same(decoded(encoded(stored, kind, exif=exif, **LOSSLESS.get(kind, {}))), photo)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "TIFF"])
def test_the_first_of_several_pictures_in_a_file_is_taken(photo: Image.Image, kind: str) -> None:
    others = [photo.rotate(90), photo.rotate(180)]

    data = encoded(photo, kind, save_all=True, append_images=others, **LOSSLESS.get(kind, {}))

    assert Image.open(io.BytesIO(data)).n_frames == 3  # type: ignore[attr-defined]
    assert same(decoded(data), photo)


def test_the_first_view_of_a_phones_double_picture_is_taken(photo: Image.Image) -> None:
    data = encoded(photo, "MPO", save_all=True, append_images=[photo.rotate(180)])

    assert difference(decoded(data), photo) < difference(decoded(data), photo.rotate(180)) / 2


@pytest.mark.parametrize(
    ("data", "kind", "says"),
    [
        (b"", BadInput, "the picture is empty"),
        (b"I am a text, renamed photo.jpg", BadInput, "no picture: 30 bytes that begin with 49 20 61"),
        (bytes(range(256)), BadInput, "send JPEG, PNG, WebP, BMP and TIFF"),
        (b"GIF89a....", UnsupportedMedia, "the body is GIF"),
        (b'  <svg xmlns="x"/>', UnsupportedMedia, "the body is SVG"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><svg/>", UnsupportedMedia, "the body is XML or SVG"),
        (b"<!DOCTYPE html><html></html>", UnsupportedMedia, "the body is HTML"),
        (b"%PDF-1.7", UnsupportedMedia, "the body is PDF"),
        (b"\x00\x00\x00\x18ftypheic", UnsupportedMedia, "the body is HEIC"),
        (b"BMW is a car", BadInput, "the BMP picture is broken"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", BadInput, "the WEBP picture is broken"),
        (b"\xff\xd8\xff", BadInput, "the JPEG picture is broken"),
    ],
)
def test_what_is_no_picture_is_refused_by_kind(data: bytes, kind: type[GshareError], says: str) -> None:
    with pytest.raises(GshareError, match=says) as caught:
        decoded(data)
    assert type(caught.value) is kind


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9])
def test_a_cut_file_is_refused_and_the_next_one_read(photo: Image.Image, kind: str, part: float) -> None:
    whole = encoded(photo, kind)

    with pytest.raises(BadInput, match=f"the {kind} picture is broken"):
        decoded(whole[: int(len(whole) * part)])
    assert decoded(whole).size == photo.size


@pytest.mark.parametrize("kind", KINDS)
def test_no_byte_that_is_changed_is_ever_a_fault_of_ours(photo: Image.Image, kind: str) -> None:
    whole = bytearray(encoded(photo, kind))
    random = np.random.default_rng(7)
    for place in random.integers(0, len(whole), 400):
        changed = whole.copy()
        changed[place] = random.integers(256)
        try:
            assert decoded(bytes(changed)).mode == "RGB"
        except GshareError as refusal:
            assert 400 <= refusal.status < 500


def test_the_limit_of_pixels_can_be_lower(photo: Image.Image) -> None:
    with pytest.raises(TooLarge, match="64 × 43 pixels; at most 1,000"), decoded_image(encoded(photo), max_pixels=1000):
        pass


def test_a_strip_that_resizing_would_blow_up_is_refused() -> None:
    with pytest.raises(BadInput, match="one side at most 100 times the other"):
        decoded(encoded(Image.new("RGB", (1010, 10))))


def test_a_picture_that_is_not_done_with_keeps_the_next_one_waiting_where_memory_has_no_room(
    photo: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget = PixelBudget(photo.width * photo.height)
    monkeypatch.setattr(image, "_budget", budget)
    order, data = list[str](), encoded(photo)

    def second() -> None:
        with decoded_image(data):
            order.append("second in")

    thread = threading.Thread(target=second)
    with decoded_image(data):
        thread.start()
        while thread.is_alive() and not budget.is_waited_for:
            pass
        order.append("first out")
    thread.join()

    assert order == ["first out", "second in"]


def webp_canvas(width: int, height: int) -> bytes:
    size = (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<L", 10) + b"\x02\x00\x00\x00" + size
    return b"RIFF" + struct.pack("<L", len(body)) + body


def bmp_claiming(width: int, height: int) -> bytes:
    info = struct.pack("<LllHHLLllLL", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<LHHL", 54, 0, 0, 54) + info


@pytest.mark.parametrize(
    "data",
    [bmp_claiming(20_000, 20_000), bmp_claiming(2**31 - 1, -(2**31 - 1)), webp_canvas(16_000, 16_000)],
    ids=["bmp", "bmp of any size", "webp"],
)
def test_a_head_that_promises_too_many_pixels_is_enough_to_refuse_a_file(data: bytes) -> None:
    with pytest.raises(GshareError) as caught:
        decoded(data)
    assert caught.value.status in (400, 413)


def test_texts_that_unpack_to_gigabytes_are_never_unpacked() -> None:
    bomb = zlib.compress(bytes(30_000_000), 9)
    texts = [png_chunk(b"zTXt", b"name%d\0\0" % n + bomb) for n in range(20)]
    rows = zlib.compress(b"\x00\x01\x02\x03")

    with pytest.raises(BadInput, match="the PNG picture is broken: Decompressed data too large"):
        decoded(png_file(1, 1, *texts, png_chunk(b"IDAT", rows)))


def test_run_length_bmp_is_refused_since_unpacking_it_holds_all_threads() -> None:
    picture = bytearray(encoded(Image.new("P", (8, 8)), "BMP"))
    picture[30] = 1

    with pytest.raises(UnsupportedMedia, match="run-length"):
        decoded(bytes(picture))


def test_warnings_of_pillow_stay_out_of_the_log() -> None:
    """In a process of its own, since pytest has its own rules for warnings."""
    largest = png_bomb(9_500, 9_500)
    code = (
        "import sys; from gshare.errors import TooLarge; from gshare.inputs.image import decoded_image\n"
        "try:\n    with decoded_image(sys.stdin.buffer.read()): pass\n"
        "except TooLarge: print('too large')"
    )
    ran: Any = subprocess.run([sys.executable, "-c", code], input=largest, capture_output=True, check=True, env=PATHS)

    assert MAX_PIXELS < 9_500**2
    assert (ran.stdout.strip(), ran.stderr) == (b"too large", b"")


PATHS = {"PYTHONPATH": ":".join(sys.path)}
