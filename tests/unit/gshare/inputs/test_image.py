from __future__ import annotations

import io
import resource
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from gshare.errors import BadInput, GshareError, TooLarge, UnsupportedMedia
from gshare.inputs.image import decode_image
from PIL import Image
from sklearn.datasets import load_sample_image

ORIENTATION = 0x0112


@pytest.fixture(scope="module")
def photo() -> Image.Image:
    """A real photograph, scaled down."""
    return Image.fromarray(load_sample_image("china.jpg")).resize((64, 43))


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def same(one: Image.Image, other: Image.Image) -> bool:
    return np.array_equal(np.asarray(one), np.asarray(other))


def png_claiming(width: int, height: int) -> bytes:
    """A small file that unpacks to width × height black pixels."""
    row = b"\x00" * (width * 3 + 1)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(row) for _ in range(min(height, 64))) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_a_png_is_decoded_exactly_and_a_jpeg_as_pillow_does(photo: Image.Image) -> None:
    jpeg = encoded(photo, "JPEG", quality=90)

    assert same(decode_image(encoded(photo)), photo)
    assert same(decode_image(jpeg), Image.open(io.BytesIO(jpeg)))


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA", "LA"])
def test_every_way_to_store_a_picture_gives_rgb(photo: Image.Image, mode: str) -> None:
    stored = photo.convert(mode)

    assert same(decode_image(encoded(stored)), stored.convert("RGB"))


@pytest.mark.parametrize("mode", ["L", "CMYK", "YCbCr"])
def test_every_colour_model_of_jpeg_gives_rgb(photo: Image.Image, mode: str) -> None:
    data = encoded(photo.convert(mode), "JPEG")

    assert same(decode_image(data), Image.open(io.BytesIO(data)).convert("RGB"))


def test_transparent_parts_are_white() -> None:
    picture = Image.new("RGBA", (2, 1), (255, 0, 0, 255))
    picture.putpixel((1, 0), (10, 20, 30, 0))

    decoded = decode_image(encoded(picture))

    assert [decoded.getpixel((0, 0)), decoded.getpixel((1, 0))] == [(255, 0, 0), (255, 255, 255)]


def test_a_transparent_colour_of_a_palette_is_white() -> None:
    picture = Image.new("P", (2, 1))
    picture.putpalette([1, 2, 3, 200, 100, 50])
    picture.putpixel((1, 0), 1)

    decoded = decode_image(encoded(picture, transparency=0))

    assert [decoded.getpixel((0, 0)), decoded.getpixel((1, 0))] == [(255, 255, 255), (200, 100, 50)]


def test_sixteen_bit_grey_keeps_its_shades() -> None:
    values = np.array([[0, 256, 32768, 65535]], np.uint16)

    decoded = decode_image(encoded(Image.fromarray(values)))

    assert np.asarray(decoded)[0, :, 0].tolist() == [0, 1, 128, 255]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_camera_turned_by_its_exif_tag_gives_the_same_upright_picture(photo: Image.Image, orientation: int) -> None:
    turns = {
        2: Image.Transpose.FLIP_LEFT_RIGHT,
        3: Image.Transpose.ROTATE_180,
        4: Image.Transpose.FLIP_TOP_BOTTOM,
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        7: Image.Transpose.TRANSVERSE,
        8: Image.Transpose.ROTATE_270,
    }
    stored = photo.transpose(turns[orientation]) if orientation in turns else photo
    exif = Image.Exif()
    exif[ORIENTATION] = orientation

    assert same(decode_image(encoded(stored, exif=exif)), photo)


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
@pytest.mark.parametrize("exif", [b"Exif\x00\x00nonsense", b"Exif\x00\x00II*\x00\xff\xff\xff\xff", b"\x00"])
def test_a_broken_exif_block_is_ignored(photo: Image.Image, exif: bytes) -> None:
    data = encoded(photo, "JPEG", exif=exif)

    assert decode_image(data).size == photo.size


def broken_files(photo: Image.Image) -> dict[str, tuple[bytes, type[GshareError]]]:
    jpeg, png = encoded(photo, "JPEG"), encoded(photo)
    frames = [photo.rotate(angle) for angle in (10, 20)]
    return {
        "nothing": (b"", BadInput),
        "text": (b"I am a text, renamed photo.jpg", BadInput),
        "garbage": (bytes(range(256)), BadInput),
        "half a jpeg": (jpeg[: len(jpeg) // 2], BadInput),
        "head of a jpeg": (jpeg[:20], BadInput),
        "half a png": (png[: len(png) // 2], BadInput),
        "a png with a broken checksum": (png[:40] + b"\xff" + png[41:], BadInput),
        "gif": (encoded(photo, "GIF", save_all=True, append_images=frames), UnsupportedMedia),
        "webp": (encoded(photo, "WEBP"), UnsupportedMedia),
        "bmp": (encoded(photo, "BMP"), UnsupportedMedia),
        "tiff": (encoded(photo, "TIFF"), UnsupportedMedia),
        "svg": (b'  <svg xmlns="x"/>', UnsupportedMedia),
        "html": (b"<!DOCTYPE html><html></html>", UnsupportedMedia),
        "pdf": (b"%PDF-1.7", UnsupportedMedia),
    }


def test_what_is_no_jpeg_or_png_is_refused_by_kind_and_the_next_picture_is_read(photo: Image.Image) -> None:
    for name, (data, kind) in broken_files(photo).items():
        with pytest.raises(GshareError) as caught:
            decode_image(data)
        assert type(caught.value) is kind, f"{name}: {caught.value!r}"
    assert same(decode_image(encoded(photo)), photo)


@pytest.mark.parametrize("size", [(7_100, 7_100), (12_000, 12_000), (19_000, 19_000)])
def test_declared_pixels_are_checked_before_memory_is_spent(size: tuple[int, int]) -> None:
    data = png_claiming(*size)
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ThreadPoolExecutor(8) as pool:
        for refusal in [pool.submit(decode_image, data) for _ in range(100)]:
            assert isinstance(refusal.exception(), TooLarge)

    assert len(data) < 100_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak_kb < 20_000


def test_the_limit_of_pixels_can_be_lower(photo: Image.Image) -> None:
    with pytest.raises(TooLarge, match="64 × 43 pixels; at most 1,000"):
        decode_image(encoded(photo), max_pixels=1000)


def test_a_strip_that_resizing_would_blow_up_is_refused() -> None:
    with pytest.raises(BadInput, match="one side at most 100 times the other"):
        decode_image(encoded(Image.new("RGB", (1010, 10))))
