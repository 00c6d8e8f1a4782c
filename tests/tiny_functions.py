"""All six functions with models small enough for tests, and inputs that each of them answers."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from tests.sounds import noise, sound_file, tone

FUNCTIONS = Path(__file__).parent.parent / "functions"


@dataclass(frozen=True, slots=True)
class TinyFunction:
    """A function and how to make it small."""

    name: str
    config: Mapping[str, object]
    """Its MODEL_CONFIG."""
    sample: Callable[[random.Random], bytes]
    """A body that it answers, differing in size from one to the next."""
    content_type: str

    @property
    def folder(self) -> Path:
        return FUNCTIONS / self.name

    def env(self) -> dict[str, str]:
        """Environment of a replica with random weights."""
        return {"GSHARE_FUNCTION": f"{self.name}.openfaas-fn", "MODEL_CONFIG": json.dumps(dict(self.config))}


def picture(source: random.Random) -> bytes:
    """A PNG of noise."""
    size = source.randint(8, 120), source.randint(8, 120), 3
    pixels = np.random.default_rng(source.getrandbits(32)).integers(0, 256, size, np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def sound(source: random.Random) -> bytes:
    """A WAV of a tone in some noise."""
    seconds = source.uniform(0.2, 2)
    return sound_file(tone(source.uniform(200, 3000), seconds) + noise(seconds, seed=source.getrandbits(32)))


def words(source: random.Random, most: int) -> str:
    """Nonsense in words."""
    letters = "abcdefghijklmnopqrstuvwxyzéß"
    return " ".join("".join(source.choices(letters, k=source.randint(1, 9))) for _ in range(source.randint(1, most)))


def question(source: random.Random) -> bytes:
    return json.dumps({"question": words(source, 8), "context": words(source, 200)}).encode()


def sentence(source: random.Random) -> bytes:
    return json.dumps({"text": words(source, 8)}).encode()


_BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
_VIT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "num_labels": 12}
_RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "num_labels": 12}
_RESNEXT = {"depths": [1, 1], "groups": 4, "width_per_group": 4, "num_labels": 12}
_RNNT = {"encoder_hidden": 32, "prediction_hidden": 16, "joint_hidden": 32}

CLASSIFIERS = (
    TinyFunction("resnet50", _RESNET, picture, "image/png"),
    TinyFunction("resnext", _RESNEXT, picture, "image/png"),
    TinyFunction("vit", _VIT, picture, "image/png"),
)
TINY_FUNCTIONS = (
    *CLASSIFIERS,
    TinyFunction("bert", _BERT, question, "application/json"),
    TinyFunction("rnnt", _RNNT, sound, "audio/wav"),
    TinyFunction("gnmt", {"hidden_size": 16, "vocab_size": 600}, sentence, "application/json"),
)
