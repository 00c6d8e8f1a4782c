"""Any of the ways in which a picture stores its colours, to 8-bit red, green and blue."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from PIL.TiffImagePlugin import BITSPERSAMPLE, PHOTOMETRIC_INTERPRETATION

from gshare.errors import UnsupportedMedia

WHITE = 255
_ZERO_IS_WHITE = 0
_DEEP_MODES = ("I;16", "I;16L", "I;16B", "I;16N")
_TRANSPARENCY = "transparency"


def to_rgb(image: Image.Image) -> Image.Image:
    """The picture in RGB: transparent parts white, deeper samples by their high byte.

    Raises:
        UnsupportedMedia: samples that have no usual meaning in 8 bits.
    """
    if image.mode in _DEEP_MODES:
        return _from_deep_grey(image)
    if image.mode in ("I", "F"):
        raise UnsupportedMedia("the picture has signed, 32-bit or float samples; send 8 or 16 bits a colour")
    _forget_odd_transparency(image)
    if image.has_transparency_data:
        return _on_white(image if image.mode == "RGBA" else image.convert("RGBA"))
    return image if image.mode == "RGB" else image.convert("RGB")


def _on_white(layered: Image.Image) -> Image.Image:
    white = Image.new("RGB", layered.size, "white")
    white.paste(layered, mask=layered.getchannel("A"))
    return white


def _forget_odd_transparency(image: Image.Image) -> None:
    """A transparent colour outside 0–255 is one that none of the pixels, which are 8-bit by now, can have."""
    colour = image.info.get(_TRANSPARENCY)
    values = colour if isinstance(colour, tuple) else (colour,)
    if any(isinstance(value, int) and not 0 <= value <= WHITE for value in values):
        del image.info[_TRANSPARENCY]


def _from_deep_grey(image: Image.Image) -> Image.Image:
    """Pillow's own conversion clips everything above 255 to white."""
    values: NDArray[Any] = np.asarray(image)
    tags = getattr(image, "tag_v2", {})  # of a TIFF file
    bits = tags.get(BITSPERSAMPLE, (16,))[0]
    grey = (values >> (bits - 8)).astype(np.uint8)
    if tags.get(PHOTOMETRIC_INTERPRETATION) == _ZERO_IS_WHITE:
        grey = WHITE - grey
    transparent = image.info.get(_TRANSPARENCY)
    if transparent is not None:
        grey[values == transparent] = WHITE
    return Image.fromarray(grey).convert("RGB")
