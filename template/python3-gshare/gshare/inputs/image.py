"""Pictures: bytes of an untrusted client to an upright RGB image, refusing what is no picture or too large."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError

from gshare.errors import BadInput, TooLarge, UnsupportedMedia

FORMATS = ("JPEG", "PNG")
MAX_PIXELS = 50_000_000
"""Width × height that is still decoded; at 3 bytes each, 150 MB."""
MAX_ASPECT_RATIO = 100
"""Longer over shorter side; beyond it, resizing by the shorter side would need any amount of memory."""
_OTHER_MEDIA = (
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"%PDF", "PDF"),
    (b"<svg", "SVG"),
    (b"<?xml", "XML or SVG"),
    (b"<!doctype", "HTML"),
    (b"<html", "HTML"),
)
_BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, ZeroDivisionError)
"""What Pillow's readers raise on broken files."""


def decode_image(data: bytes, *, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The picture in `data`, turned upright by its EXIF tag, in RGB; transparent parts are white.

    Raises:
        BadInput: no picture, or a broken one. UnsupportedMedia: another kind of file. TooLarge: too many pixels.
    """
    if not data:
        raise BadInput("the picture is empty (0 bytes); send a JPEG or PNG")
    image = _open(data)
    _check_size(image, max_pixels)
    try:
        image.load()
    except Image.DecompressionBombError as error:
        raise TooLarge(f"the {image.format} picture unpacks to too much: {error}") from error
    except _BROKEN as error:
        raise BadInput(f"the {image.format} picture is broken: {error}") from error
    return _to_rgb(_upright(image))


def _open(data: bytes) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge(f"the picture has too many pixels: at most {MAX_PIXELS:,} are decoded") from error
    except (UnidentifiedImageError, *_BROKEN) as error:
        other = _other_media(data)
        if other:
            raise UnsupportedMedia(f"the body is {other}; this function reads JPEG and PNG") from error
        start = data[:16].hex(" ")
        raise BadInput(f"the body is no JPEG or PNG picture: {len(data)} bytes that begin with {start}") from error


def _other_media(data: bytes) -> str | None:
    head = data[:64].lstrip().lower()
    if head[:4] == b"riff" and head[8:12] == b"webp":
        return "WebP"
    if head[4:8] == b"ftyp":
        return "HEIC, AVIF or video"
    return next((name for magic, name in _OTHER_MEDIA if head.startswith(magic.lower())), None)


def _check_size(image: Image.Image, max_pixels: int) -> None:
    width, height = image.size
    if width * height > max_pixels:
        raise TooLarge(f"the picture is {width} × {height} pixels; at most {max_pixels:,} in all are decoded")
    if max(width, height) > MAX_ASPECT_RATIO * min(width, height):
        raise BadInput(f"the picture is {width} × {height} pixels; one side at most {MAX_ASPECT_RATIO} times the other")


def _upright(image: Image.Image) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except _BROKEN:  # a broken EXIF block says nothing about orientation; the picture itself is whole
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return _from_deep_grey(image)
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        white = Image.new("RGBA", layered.size, "white")
        return Image.alpha_composite(white, layered).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _from_deep_grey(image: Image.Image) -> Image.Image:
    """16-bit grey to 8-bit: Pillow's own conversion clips everything above 255 to white."""
    values: np.ndarray[Any, np.dtype[np.int64]] = np.asarray(image).astype(np.int64)
    return Image.fromarray((values.clip(0, 65535) >> 8).astype(np.uint8)).convert("RGB")
