"""Pictures as clients send them: real photographs, in any file format, whole or meant to do harm."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
from gshare.inputs.image import decoded_image
from PIL import ExifTags, Image
from sklearn.datasets import load_sample_image

TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How a camera that writes this orientation held its picture."""


def photograph(width: int = 64, height: int = 43) -> Image.Image:
    """A real photograph, scaled down."""
    return Image.fromarray(load_sample_image("china.jpg")).resize((width, height))


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The file."""
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def decoded(data: bytes) -> Image.Image:
    """What the runtime makes of a file."""
    with decoded_image(data) as image:
        return image


def same(one: Image.Image, other: Image.Image) -> bool:
    """Whether two pictures are equal to the last bit."""
    return np.array_equal(np.asarray(one), np.asarray(other))


def difference(one: Image.Image, other: Image.Image) -> int:
    """The most by which any colour of any pixel differs."""
    pair = [np.asarray(image).astype(int) for image in (one, other)]
    return int(np.abs(pair[0] - pair[1]).max())


def turned(image: Image.Image, orientation: int) -> tuple[Image.Image, Image.Exif]:
    """The picture as a camera stores it that was held so, and the EXIF block that says how."""
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    return (image.transpose(TURNS[orientation]) if orientation in TURNS else image), exif


def png_chunk(kind: bytes, data: bytes) -> bytes:
    """One chunk with its length and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_file(width: int, height: int, *chunks: bytes, depth: int = 8, colours: int = 2) -> bytes:
    """A PNG file of these chunks behind its head, which promises so many pixels."""
    head = struct.pack(">IIBBBBB", width, height, depth, colours, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", head) + b"".join(chunks) + png_chunk(b"IEND", b"")


def png_bomb(width: int, height: int) -> bytes:
    """A whole PNG of black pixels: some KB that unpack to width × height of them."""
    packer, row = zlib.compressobj(9), b"\x00" * ((width + 7) // 8 + 1)
    data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    return png_file(width, height, png_chunk(b"IDAT", data), depth=1, colours=0)


def tiff_file(*tags: tuple[int, int, int, int], tail: bytes = b"", order: str = "<") -> bytes:
    """A TIFF file with one directory of (tag, type, count, value), and `tail` behind it at `tiff_tail(len(tags))`."""
    head = b"II*\x00" if order == "<" else b"MM\x00*"
    entries = b"".join(struct.pack(f"{order}HHLL", *tag) for tag in sorted(tags))
    return head + struct.pack(f"{order}LH", 8, len(tags)) + entries + struct.pack(f"{order}L", 0) + tail


def tiff_tail(tags: int) -> int:
    """Place of the first byte behind a directory of so many tags."""
    return 8 + 2 + 12 * tags + 4
