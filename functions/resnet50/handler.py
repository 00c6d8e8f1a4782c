"""ResNet-50: a picture in, the most likely ImageNet labels out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gshare.context import Context
from gshare.handler import Handler
from gshare.inputs.classification import Prediction, read_image_question, top_predictions
from gshare.inputs.pixels import Preprocessing
from gshare.request import Request
from numpy.typing import NDArray
from transformers import ResNetConfig, ResNetForImageClassification

MODEL = "resnet50"
IMAGENET_LABELS = 1000

Item = tuple[NDArray[np.float32], int]
"""Pixels as the model takes them, and how many labels are asked for."""


class Classifier(Handler[Item, list[Prediction]]):
    """microsoft/resnet-50 and its like; `random:` weights have the same shape and labels without a name."""

    def load(self, context: Context) -> None:
        self.device = context.device.torch_device
        self.weights = context.weights.text
        self.config = ResNetConfig(**context.model_config({"num_labels": IMAGENET_LABELS}))
        self.preprocessing = Preprocessing.from_config(context.weights.json("preprocessor_config.json"))
        self.model = context.build(lambda: ResNetForImageClassification(self.config))

    def example(self) -> Item:
        edge = self.preprocessing.edge
        return np.zeros((3, edge, edge), np.float32), 1

    def decode(self, request: Request) -> Item:
        asked = read_image_question(request, labels=self.config.num_labels)
        return self.preprocessing.apply(asked.image), asked.top_k

    def forward(self, items: list[Item]) -> list[list[Prediction]]:
        pixels = torch.from_numpy(np.stack([item[0] for item in items])).to(self.device)
        scores = self.model(pixels).logits.softmax(-1).cpu().numpy()
        return [
            top_predictions(row, top_k, id2label=self.config.id2label)
            for row, (_, top_k) in zip(scores, items, strict=True)
        ]

    def encode(self, output: list[Prediction], request: Request) -> dict[str, Any]:
        return {"predictions": output, "model": MODEL, "weights": self.weights}
