"""From an RGB image to the numbers that an image classifier was trained on, as its preprocessor_config.json says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gshare.errors import WeightsError

EDGE = 224
CROP_PCT = 0.875
RESAMPLE = Image.Resampling.BICUBIC
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
WARP_FROM = 384
"""At this size and above the whole picture is squeezed into the square; below, it is cropped from the centre."""


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """Resize the shorter side to `edge / crop_pct`, cut `edge` × `edge` from the centre, scale to 0–1, normalise."""

    edge: int = EDGE
    crop_pct: float = CROP_PCT
    resample: Image.Resampling = RESAMPLE
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | None) -> Preprocessing:
        """From a preprocessor_config.json of the ConvNeXT kind, which microsoft/resnet-50 has; None: the defaults.

        Raises:
            WeightsError: a step that this does not do.
        """
        config = config or {}
        for step in ("do_resize", "do_rescale", "do_normalize"):
            if config.get(step, True) is not True:
                raise WeightsError(f"preprocessor_config.json: {step}={config[step]!r}; only true is supported")
        return cls(
            edge=_edge(config.get("size", EDGE)),
            crop_pct=float(config.get("crop_pct") or CROP_PCT),
            resample=Image.Resampling(config.get("resample", RESAMPLE)),
            mean=tuple(config.get("image_mean", IMAGENET_MEAN)),
            std=tuple(config.get("image_std", IMAGENET_STD)),
        )

    def apply(self, image: Image.Image) -> NDArray[np.float32]:
        """Channels × edge × edge, for an RGB image."""
        square = self._warp(image) if self.edge >= WARP_FROM else self._crop(image)
        scaled = (np.asarray(square, dtype=np.float64) * (1 / 255)).astype(np.float32)
        mean, std = np.asarray(self.mean, np.float32), np.asarray(self.std, np.float32)
        return np.ascontiguousarray(((scaled - mean) / std).transpose(2, 0, 1))

    def _warp(self, image: Image.Image) -> Image.Image:
        return image.resize((self.edge, self.edge), self.resample)

    def _crop(self, image: Image.Image) -> Image.Image:
        short_side = int(self.edge / self.crop_pct)
        width, height = image.size
        long_side = int(short_side * max(width, height) / min(width, height))
        size = (short_side, long_side) if width <= height else (long_side, short_side)
        resized = image.resize(size, self.resample)
        left, top = (size[0] - self.edge) // 2, (size[1] - self.edge) // 2
        return resized.crop((left, top, left + self.edge, top + self.edge))


def _edge(size: object) -> int:
    edge = size.get("shortest_edge") if isinstance(size, Mapping) else size
    if not isinstance(edge, int) or edge < 1:
        raise WeightsError(f"preprocessor_config.json: size={size!r}; a shortest_edge in pixels is supported")
    return edge
