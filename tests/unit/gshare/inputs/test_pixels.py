from __future__ import annotations

import numpy as np
import pytest
from gshare.errors import WeightsError
from gshare.inputs.pixels import Preprocessing
from PIL import Image
from sklearn.datasets import load_sample_image
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil

RESNET = {
    "crop_pct": 0.875,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "ConvNextFeatureExtractor",
    "image_mean": [0.485, 0.456, 0.406],
    "image_std": [0.229, 0.224, 0.225],
    "resample": 3,
    "size": 224,
}


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
@pytest.mark.parametrize(
    "settings",
    [
        RESNET,
        RESNET | {"size": {"shortest_edge": 33}, "crop_pct": 0.9, "resample": 2},
        RESNET | {"size": {"shortest_edge": 384}, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.1, 0.2, 0.3]},
    ],
    ids=["resnet-50", "small", "warped"],
)
@pytest.mark.parametrize("box", [(0, 0, 640, 427), (0, 0, 300, 427), (0, 0, 20, 13)], ids=["wide", "tall", "tiny"])
def test_pixels_equal_those_of_transformers_own_image_processor(
    name: str, settings: dict[str, object], box: tuple[int, int, int, int]
) -> None:
    image = Image.fromarray(load_sample_image(name)).crop(box)

    ours = Preprocessing.from_config(settings).apply(image)
    theirs = ConvNextImageProcessorPil(**settings)(images=image, return_tensors="np")["pixel_values"][0]

    assert ours.dtype == np.float32
    assert ours.shape == theirs.shape
    assert np.abs(ours - theirs).max() < 1e-5


def test_without_a_config_the_defaults_are_those_of_resnet_50() -> None:
    assert Preprocessing.from_config(None) == Preprocessing.from_config(RESNET)


@pytest.mark.parametrize(
    "settings", [{"size": {"height": 2, "width": 3}}, {"size": "big"}, {"do_resize": False}, {"do_normalize": False}]
)
def test_a_step_that_is_not_done_here_is_refused_instead_of_left_out(settings: dict[str, object]) -> None:
    with pytest.raises(WeightsError, match=r"preprocessor_config\.json"):
        Preprocessing.from_config(settings)
