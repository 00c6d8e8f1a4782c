"""A small ResNet that really learned something: scikit-learn's handwritten digits, as a weights folder."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from gshare.inputs.image_settings import CONVNEXT, processor_settings
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from transformers import ResNetConfig, ResNetForImageClassification

EDGE = 32
PREPROCESSOR = {"size": {"shortest_edge": EDGE}, "crop_pct": 1.0}
ARCHITECTURE = {
    "embedding_size": 16,
    "hidden_sizes": [16, 32],
    "depths": [1, 1],
    "layer_type": "basic",
    "num_labels": 10,
}
EPOCHS = 4
BATCH = 32


@dataclass(frozen=True, slots=True)
class Digits:
    """Pictures of digits that the model never saw, as PNG files, and what they show."""

    pictures: list[bytes]
    labels: list[int]


def train_on_digits(folder: Path) -> Digits:
    """Train on 1,497 of the 1,797 digits, write the weights to `folder`, return the other 300."""
    digits = load_digits()
    pictures = [_picture(image) for image in digits.images]
    order = np.random.default_rng(0).permutation(len(pictures))
    train, test = order[300:], order[:300]
    preprocessing = processor_settings(PREPROCESSOR, default=CONVNEXT)
    pixels = torch.from_numpy(np.stack([preprocessing.apply(one) for one in pictures]))
    model = _fit(pixels[train], torch.from_numpy(digits.target[train]))
    folder.mkdir(parents=True)
    labels = {str(number): str(number) for number in range(10)}
    (folder / "config.json").write_text(json.dumps(ARCHITECTURE | {"model_type": "resnet", "id2label": labels}))
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSOR))
    save_file(model.state_dict(), folder / "model.safetensors")
    return Digits([_png(pictures[index]) for index in test], [int(digits.target[index]) for index in test])


def _fit(pixels: torch.Tensor, labels: torch.Tensor) -> ResNetForImageClassification:
    torch.manual_seed(0)
    model = ResNetForImageClassification(ResNetConfig(**ARCHITECTURE))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(pixels)).split(BATCH):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            cross_entropy(model(pixels[chosen]).logits, labels[chosen]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return model.eval()


def _picture(digit: NDArray[np.float64]) -> Image.Image:
    """A digit's 8 × 8 values of 0–16 as a grey picture of ordinary size."""
    grey = Image.fromarray((digit * 15.9375).astype(np.uint8))
    return grey.resize((EDGE, EDGE), Image.Resampling.BICUBIC).convert("RGB")


def _png(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()
