from __future__ import annotations

import numpy as np
import pytest
from gshare.inputs.pixels import Preprocessing
from PIL import Image


def numbered(width: int, height: int) -> Image.Image:
    """Every pixel says where it is: red its column, green its row."""
    columns, rows = np.meshgrid(np.arange(width), np.arange(height))
    return Image.fromarray(np.stack([columns, rows, 0 * rows], -1).astype(np.uint8))


def corner(preprocessing: Preprocessing, image: Image.Image) -> tuple[int, int]:
    """Column and row of the picture that became the upper left pixel."""
    return tuple(round(float(value) * 255) for value in preprocessing.apply(image)[:2, 0, 0])  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("size", "rounded", "expected"),
    [
        ((21, 16), False, (5, 3)),
        ((21, 16), True, (6, 3)),
        ((23, 16), False, (6, 3)),
        ((23, 16), True, (6, 3)),
        ((16, 27), False, (3, 8)),
        ((16, 27), True, (3, 8)),
    ],
)
def test_the_square_is_cut_from_the_centre_by_either_rule(
    size: tuple[int, int], rounded: bool, expected: tuple[int, int]
) -> None:
    """transformers cuts half a pixel to the left; torchvision and timm round to the even column."""
    preprocessing = Preprocessing(10, 16, Image.Resampling.NEAREST, (0,) * 3, (1,) * 3, rounded_centre=rounded)

    assert corner(preprocessing, numbered(*size)) == expected


def test_a_picture_is_squeezed_whole_where_nothing_is_cut() -> None:
    halves = Image.new("RGB", (40, 10), "black")
    halves.paste("white", (20, 0, 40, 10))

    pixels = Preprocessing(4, None, Image.Resampling.BOX, (0.5,) * 3, (0.5,) * 3).apply(halves)

    assert pixels.dtype == np.float32
    assert pixels.tolist() == [[[-1, -1, 1, 1]] * 4] * 3
