"""C9: a grey JPEG crashed the classifier. However its colours are stored, a picture is the same picture."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from flask.testing import FlaskClient
from PIL import Image

from tests.pictures import encoded
from tests.served_app import FUNCTIONS, served
from tests.tiny_functions import CLASSIFIERS, TinyFunction
from tests.tiny_resnet import Digits, train_on_digits

STORED = [
    *(("PNG", mode) for mode in ("L", "LA", "P", "1", "RGB", "RGBA")),
    *(("TIFF", mode) for mode in ("L", "LA", "P", "1", "RGB", "RGBA", "CMYK", "YCbCr")),
    *(("JPEG", mode) for mode in ("L", "CMYK", "YCbCr")),
    *(("WEBP", mode) for mode in ("RGB", "RGBA")),
    *(("BMP", mode) for mode in ("L", "P", "1", "RGB")),
]
QUALITY: dict[str, dict[str, Any]] = {"JPEG": {"quality": 100}, "WEBP": {"lossless": True}}


@pytest.fixture(scope="module")
def weights_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def digits(weights_root: Path) -> Digits:
    """A network that learned handwritten digits, and some that it never saw."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a model only loses by more
    try:
        return train_on_digits(weights_root / "digits")
    finally:
        torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def trained(weights_root: Path, digits: Digits) -> Iterator[FlaskClient]:
    with served(
        FUNCTIONS / "resnet50", {"MODEL_WEIGHTS": "file:digits", "GSHARE_WEIGHTS_ROOT": str(weights_root)}
    ) as app:
        yield app


@pytest.mark.parametrize(("kind", "mode"), STORED)
def test_a_digit_is_recognised_however_its_colours_are_stored(
    trained: FlaskClient, digits: Digits, kind: str, mode: str
) -> None:
    for picture, label in zip(digits.pictures[:5], digits.labels[:5], strict=True):
        stored = Image.open(io.BytesIO(picture)).convert(mode)
        reply = trained.post("/", data=encoded(stored, kind, **QUALITY.get(kind, {})))
        assert reply.status_code == 200, reply.text
        assert reply.get_json()["predictions"][0]["label"] == str(label)


@pytest.mark.parametrize("function", CLASSIFIERS, ids=lambda function: function.name)
def test_every_image_function_takes_every_one_of_them(function: TinyFunction, digits: Digits) -> None:
    original = Image.open(io.BytesIO(digits.pictures[0]))
    with served(function.folder, function.env()) as client:
        for kind, mode in STORED:
            reply = client.post("/", data=encoded(original.convert(mode), kind, **QUALITY.get(kind, {})))
            assert reply.status_code == 200, (kind, mode, reply.text)
