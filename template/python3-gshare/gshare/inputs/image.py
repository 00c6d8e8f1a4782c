"""Pictures: bytes of an untrusted client to an upright RGB image, refusing what is no picture or too large.

By rule: of a file with several pictures (pages of a TIFF, frames of a WebP or PNG animation, a phone's JPEG with a
second view) the first is taken. What a file declares is checked before memory is spent on it.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import ExifTags, Image
from PIL.TiffImagePlugin import TiffImageFile

from gshare.errors import BadInput, TooLarge, UnsupportedMedia
from gshare.inputs.image_colours import to_rgb
from gshare.inputs.image_jpeg import check_scans, split_jpeg
from gshare.inputs.image_kinds import kind_of
from gshare.inputs.image_memory import PixelBudget
from gshare.inputs.image_tiff import check_blocks, check_directories

MAX_PIXELS = 50_000_000
"""Width × height that is still decoded; Pillow needs 4 bytes for each."""
MAX_ASPECT_RATIO = 100
"""Longer over shorter side; beyond it, resizing by the shorter side would need any amount of memory."""
MAX_EXIF_BYTES = 1_000_000
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""EXIF's orientation to what turns the picture upright."""
_RUN_LENGTH = (1, 2)
"""BMP's compression, which Pillow unpacks in Python: a file of some KB would hold all threads for seconds."""
_BROKEN = (
    *(OSError, EOFError, SyntaxError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError),
    *(AssertionError, RuntimeError, UserWarning, struct.error, zlib.error),
)
"""What Pillow's readers raise on broken files; warnings where Python was told to raise them."""
_budget = PixelBudget(2 * MAX_PIXELS)

# What Pillow warns of is in the client's file: the client is told, or the picture is read all the same. Warnings would
# fill the log, and Python remembers every text of theirs.
warnings.filterwarnings("ignore", module=r"PIL\.")


@contextmanager
def decoded_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Iterator[Image.Image]:
    """The picture in `data`, turned upright by its EXIF tag, in RGB; transparent parts are white.

    A context: pictures that are not done with count against what may be in memory at once, and further ones wait.

    Raises:
        BadInput: no picture, or a broken one. UnsupportedMedia: another kind of file. TooLarge: too many pixels.
    """
    kind, exif = kind_of(data), b""
    if kind == "JPEG":
        data, exif = split_jpeg(data)
    if kind == "TIFF":
        check_directories(data, max_pixels=max_pixels)
    with _readable(kind):
        image: Image.Image = Image.open(io.BytesIO(data), formats=(kind,))
    _check(image, data, max_pixels=max_pixels)
    with _budget.taken(image.width * image.height):
        with _readable(kind):
            image.load()
            exif = exif or image.info.get("exif", b"")
            image = to_rgb(image)
        yield _upright(image, exif)


@contextmanager
def _readable(kind: str) -> Iterator[None]:
    try:
        yield
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge(f"the {kind} picture has too many pixels; at most {MAX_PIXELS:,} are decoded") from error
    except _BROKEN as error:
        raise BadInput(f"the {kind} picture is broken: {error or type(error).__name__}") from error


def _check(image: Image.Image, data: bytes, *, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise TooLarge(f"the picture is {width} × {height} pixels; at most {max_pixels:,} in all are decoded")
    if not 0 < max(width, height) <= MAX_ASPECT_RATIO * min(width, height):
        raise BadInput(f"the picture is {width} × {height} pixels; one side at most {MAX_ASPECT_RATIO} times the other")
    if image.format == "BMP" and image.info.get("compression") in _RUN_LENGTH:
        raise UnsupportedMedia("the BMP picture is run-length compressed; send it uncompressed, or as PNG")
    if image.format == "JPEG":
        check_scans(data, pixels=width * height)
    if isinstance(image, TiffImageFile):
        check_blocks(image)


def _upright(image: Image.Image, exif: bytes) -> Image.Image:
    """By its EXIF block; a broken one says nothing about orientation. Pillow has turned a TIFF picture already."""
    turn = _TURNS.get(_orientation(exif))
    return image if turn is None else image.transpose(turn)


def _orientation(exif: bytes) -> int:
    block = Image.Exif()
    try:
        block.load(exif if len(exif) <= MAX_EXIF_BYTES else b"")
        return int(block.get(ExifTags.Base.Orientation, 1))
    except _BROKEN:
        return 1
