"""Image functions give the same answer to a picture whoever else is in its batch."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from gshare.config import ReplicaConfig
from gshare.context import Context
from gshare.device import open_device
from gshare.entry import import_entry
from gshare.image_classifier import ImageClassifier
from gshare.inputs.classification import Prediction
from gshare.request import Request
from gshare.weights import open_weights
from numpy.typing import NDArray
from werkzeug.datastructures import MultiDict

from tests.tiny_functions import CLASSIFIERS, TinyFunction

PICTURES = 7


def loaded(function: TinyFunction, folder: Path) -> ImageClassifier:
    config = ReplicaConfig(device="cpu:0", weights_cache=str(folder))
    entry = import_entry(function.folder)
    assert isinstance(entry, type)
    handler = entry()
    assert isinstance(handler, ImageClassifier)
    handler.load(Context(open_device(config), open_weights("", config, hub_token=None), function.env(), folder))
    return handler


def scores(answers: list[list[Prediction]]) -> NDArray[np.float64]:
    """Pictures × labels, in the order of the labels."""
    return np.array([[one.score for one in sorted(answer, key=lambda one: one.index)] for answer in answers])


@pytest.mark.parametrize("function", CLASSIFIERS, ids=lambda function: function.name)
def test_a_batch_of_pictures_of_mixed_shape_gives_what_each_gives_alone(function: TinyFunction, tmp_path: Path) -> None:
    handler, source = loaded(function, tmp_path), random.Random(5)
    query = MultiDict({"top_k": "12"})
    items = [handler.decode(Request(body=function.sample(source), query=query)) for _ in range(PICTURES)]

    with torch.inference_mode():
        together = handler.forward(items)
        alone = [handler.forward([item])[0] for item in items]

    assert np.abs(scores(together) - scores(alone)).max() < 1e-4
    assert np.ptp(scores(alone), axis=0).max() > 1e-3, "the answers must differ for this to say anything"


@pytest.mark.parametrize("function", CLASSIFIERS, ids=lambda function: function.name)
def test_each_picture_of_a_batch_gets_as_many_labels_as_it_asked_for(function: TinyFunction, tmp_path: Path) -> None:
    handler, source = loaded(function, tmp_path), random.Random(6)
    asked = [1, 12, 5]
    items = [handler.decode(Request(body=function.sample(source), query=MultiDict({"top_k": str(k)}))) for k in asked]

    assert [len(answer) for answer in handler.forward(items)] == asked
