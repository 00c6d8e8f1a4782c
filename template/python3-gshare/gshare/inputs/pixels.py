"""From an RGB image to the numbers that an image classifier was trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Resize, cut a square out of the centre, scale to 0–1, normalise."""

    edge: int = 224
    """Side of the square that the model takes."""
    shorter_side: int | None = 256
    """The shorter side is resized to this before the square is cut out; None: the whole is squeezed into the square."""
    resample: Image.Resampling = Image.Resampling.BICUBIC
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    scale: float = 1 / 255
    rounded_centre: bool = False
    """A square that cannot lie in the middle lies half a pixel left of it, or, if true, where rounding to even says."""

    def apply(self, image: Image.Image) -> NDArray[np.float32]:
        """Channels × edge × edge, for an RGB image."""
        square = self._squeezed(image) if self.shorter_side is None else self._cut(image, self.shorter_side)
        scaled = (np.asarray(square, dtype=np.float64) * self.scale).astype(np.float32)
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        return np.ascontiguousarray(((scaled - mean) / std).transpose(2, 0, 1))

    def _squeezed(self, image: Image.Image) -> Image.Image:
        return image.resize((self.edge, self.edge), self.resample)

    def _cut(self, image: Image.Image, short_side: int) -> Image.Image:
        width, height = image.size
        long_side = int(short_side * max(width, height) / min(width, height))
        size = (short_side, long_side) if width <= height else (long_side, short_side)
        resized = image.resize(size, self.resample)
        left, top = (self._offset(side) for side in size)
        return resized.crop((left, top, left + self.edge, top + self.edge))

    def _offset(self, side: int) -> int:
        margin = side - self.edge
        return round(margin / 2) if self.rounded_centre else margin // 2
