"""Preprocessing equals that of the libraries whose settings are read."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from gshare.errors import WeightsError
from gshare.inputs.image_settings import CONVNEXT, VIT, TimmPicture, processor_settings, timm_settings
from gshare.inputs.pixels import Preprocessing
from PIL import Image
from sklearn.datasets import load_sample_image
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

RESNET: dict[str, Any] = {
    "crop_pct": 0.875,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "ConvNextFeatureExtractor",
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
    "resample": 3,
    "size": 224,
}
BASE: dict[str, Any] = {
    "do_normalize": True,
    "do_resize": True,
    "image_mean": [0.5, 0.5, 0.5],
    "image_processor_type": "ViTImageProcessor",
    "image_std": [0.5, 0.5, 0.5],
    "resample": 2,
    "size": {"height": 224, "width": 224},
}


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        (RESNET, ConvNextImageProcessorPil),
        (RESNET | {"size": {"shortest_edge": 33}, "crop_pct": 0.9, "resample": 2}, ConvNextImageProcessorPil),
        (RESNET | {"size": {"shortest_edge": 384}, "image_std": [0.1, 0.2, 0.3]}, ConvNextImageProcessorPil),
        (RESNET | {"rescale_factor": 0.01, "do_center_crop": None}, ConvNextImageProcessorPil),
        (BASE, ViTImageProcessorPil),
        (BASE | {"size": {"height": 31, "width": 31}, "resample": 3}, ViTImageProcessorPil),
        (BASE | {"size": 384, "image_mean": None}, ViTImageProcessorPil),
    ],
    ids=["resnet-50", "small", "warped", "nulls", "vit-base", "vit-small", "vit-384"],
)
@pytest.mark.parametrize("box", [(0, 0, 640, 427), (0, 0, 300, 427), (0, 0, 20, 13)], ids=["wide", "tall", "tiny"])
def test_pixels_equal_those_of_transformers_own_image_processor(
    name: str, settings: dict[str, Any], theirs: Any, box: tuple[int, int, int, int]
) -> None:
    image = Image.fromarray(load_sample_image(name)).crop(box)
    given = {key: value for key, value in settings.items() if value is not None}

    ours = processor_settings(settings, default=CONVNEXT).apply(image)
    expected = theirs(**given)(images=image, return_tensors="np")["pixel_values"][0]

    assert ours.dtype == np.float32
    assert ours.shape == expected.shape
    assert np.abs(ours - expected).max() < 1e-5


def test_what_transformers_writes_down_is_read_back() -> None:
    for processor, kind in (
        (ConvNextImageProcessorPil(size={"shortest_edge": 224}), VIT),
        (ViTImageProcessorPil(), CONVNEXT),
    ):
        assert processor_settings(processor.to_dict(), default=kind) != processor_settings(None, default=kind)


def test_without_a_file_the_kind_decides_and_the_model_says_how_large() -> None:
    assert processor_settings(None, default=CONVNEXT) == processor_settings(RESNET, default=VIT)
    assert processor_settings(None, default=VIT) == processor_settings(BASE, default=CONVNEXT)
    assert processor_settings({}, default=VIT, edge=32).edge == 32


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (RESNET | {"size": {"height": 2, "width": 3}}, "a shortest_edge, in pixels, is supported"),
        (BASE | {"size": {"shortest_edge": 224}}, "equal height and width"),
        (BASE | {"size": {"height": 2, "width": 3}}, "equal height and width"),
        (RESNET | {"size": "big"}, r"\$.size"),
        (RESNET | {"size": 0}, r"\$.size"),
        (RESNET | {"do_resize": False}, r"\$.do_resize"),
        (RESNET | {"do_normalize": False}, r"\$.do_normalize"),
        (RESNET | {"do_center_crop": True}, r"\$.do_center_crop"),
        (RESNET | {"resample": 9}, r"\$.resample"),
        (RESNET | {"feature_extractor_type": "CLIPFeatureExtractor"}, "CLIPFeatureExtractor; supported: ConvNextImage"),
    ],
)
def test_a_step_that_is_not_done_here_is_refused_instead_of_left_out(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(WeightsError, match=says) as caught:
        processor_settings(settings, default=CONVNEXT)
    assert "preprocessor_config.json" in str(caught.value)


def test_timm_s_settings_are_read_as_timm_and_torchvision_apply_them() -> None:
    published = {"input_size": [3, 224, 224], "interpolation": "bilinear", "crop_pct": 0.875, "crop_mode": "center"}

    found = timm_settings(msgspec.convert(published, TimmPicture))

    assert found == Preprocessing(224, 256, Image.Resampling.BILINEAR, rounded_centre=True)
    assert timm_settings(TimmPicture(input_size=(3, 288, 288), crop_pct=0.95)).shorter_side == 303


def test_what_timm_does_and_this_does_not_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"crop_mode"):
        msgspec.convert({"crop_mode": "border"}, TimmPicture)
    with pytest.raises(WeightsError, match="only square"):
        timm_settings(TimmPicture(input_size=(3, 224, 192)))
