"""What all image classifiers do alike: a picture in, the most likely labels out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gshare.context import Context
from gshare.errors import BadInput
from gshare.handler import Handler
from gshare.inputs.classification import Prediction, labels_asked, read_image_question, top_predictions
from gshare.inputs.image import decoded_image
from gshare.inputs.pixels import Preprocessing
from gshare.request import Request
from gshare.tensors import ANY, Datatype, Signature, TensorSpec

PIXEL_VALUES = "pixel_values"
"""The tensor that takes the place of a picture: preprocessed as the model was trained."""
MAX_PIXEL_VALUE = 1000.0
"""Above any preprocessing's range, the plain 0–255 included; what is far beyond it only overflows."""
Item = tuple[NDArray[np.float32], int]
"""Pixels as the model takes them, and how many labels are asked for."""


@dataclass(frozen=True, slots=True)
class Classifier:
    """A model that is loaded, and what belongs to it."""

    name: str
    """What the architecture is called, e.g. `resnet50`."""
    logits: Callable[[torch.Tensor], torch.Tensor]
    """Pictures × channels × edge × edge to pictures × labels."""
    preprocessing: Preprocessing
    labels: Mapping[int, str]


class ImageClassifier(Handler[Item, list[Prediction]]):
    """A handler for which `classifier` is all that is left to write."""

    @abstractmethod
    def classifier(self, context: Context) -> Classifier:
        """Build the model; runs once, as `Handler.load`."""

    def load(self, context: Context) -> None:
        self._device = context.device.torch_device
        self._weights = context.weights.text
        self._model = self.classifier(context)

    def example(self) -> Item:
        edge = self._model.preprocessing.edge
        return np.zeros((3, edge, edge), np.float32), 1

    def decode(self, request: Request) -> Item:
        asked = read_image_question(request, labels=len(self._model.labels))
        with decoded_image(asked.data) as image:
            return self._model.preprocessing.apply(image), asked.top_k

    def forward(self, items: list[Item]) -> list[list[Prediction]]:
        pixels = torch.from_numpy(np.stack([pixels for pixels, _ in items])).to(self._device)
        scores = self._model.logits(pixels).float().softmax(-1).cpu().numpy()
        return [
            top_predictions(row, top_k, id2label=self._model.labels)
            for row, (_, top_k) in zip(scores, items, strict=True)
        ]

    def encode(self, output: list[Prediction], request: Request) -> dict[str, Any]:  # noqa: ARG002
        return {"predictions": output, "model": self._model.name, "weights": self._weights}

    def signature(self) -> Signature:
        edge = self._model.preprocessing.edge
        return Signature(
            inputs=(TensorSpec(PIXEL_VALUES, Datatype.FP32, (3, edge, edge)),),
            outputs=(
                TensorSpec("label", Datatype.BYTES, (ANY,)),
                TensorSpec("index", Datatype.INT64, (ANY,)),
                TensorSpec("score", Datatype.FP32, (ANY,)),
            ),
        )

    def decode_tensors(self, tensors: Mapping[str, NDArray[Any]], request: Request) -> Item:
        pixels = tensors[PIXEL_VALUES]
        peak = float(np.abs(pixels).max())
        if peak > MAX_PIXEL_VALUE:
            raise BadInput(f"{PIXEL_VALUES}: {peak:g}; preprocessed pixels lie within ±{MAX_PIXEL_VALUE:g}")
        return pixels, labels_asked(request, labels=len(self._model.labels))

    def encode_tensors(self, output: list[Prediction], request: Request) -> Mapping[str, Any]:  # noqa: ARG002
        return {
            "label": [one.label for one in output],
            "index": [one.index for one in output],
            "score": [one.score for one in output],
        }
