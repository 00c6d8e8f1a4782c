"""RNN-T: speech in, its text out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import torch
from gshare.context import MODEL_CONFIG, Context
from gshare.errors import ConfigError, WeightsError
from gshare.handler import Handler
from gshare.inputs.audio import MAX_SECONDS, MIN_SECONDS, SAMPLE_RATE_HZ, Audio, decode_audio
from gshare.inputs.audio_request import audio_bytes, declared_rate_hz
from gshare.request import Request
from gshare.tensors import Datatype, Signature, TensorSpec
from torch.nn.utils.rnn import pad_sequence

from .alphabet import text_of
from .features import LogMel
from .greedy import transcribe
from .model import Rnnt, RnntConfig
from .untrained import untrained

MODEL = "rnnt"
MAX_AUDIO_SECONDS = "MAX_AUDIO_SECONDS"
LONGEST_SECONDS = 600.0
"""The most that MAX_AUDIO_SECONDS may say; longer speech is cut at its pauses before it is sent."""
FRAMES_AT_ONCE = 4_000
"""Frames of features in one pass, padding included: 2 minutes of speech, about 100 MB."""
EXAMPLE_SECONDS = 4
SIGNATURE = Signature(outputs=(TensorSpec("text", Datatype.BYTES), TensorSpec("seconds", Datatype.FP32)))

Output = tuple[Audio, str]


class Transcriber(Handler[Audio, Output]):
    """MLPerf's RNN-T and its like; `random:` weights have the same shape and write about a symbol in three steps."""

    def load(self, context: Context) -> None:
        self.device = context.device.torch_device
        self.weights = context.weights.text
        self.max_seconds = seconds_allowed(context.env)
        config = read_config(context)
        self.features = LogMel(self.device)
        self.model = context.build(lambda: untrained(config) if context.weights.is_random else Rnnt(config))

    def example(self) -> Audio:
        noise = np.random.default_rng(0).normal(0, 0.1, EXAMPLE_SECONDS * SAMPLE_RATE_HZ)
        return Audio(noise.astype(np.float32), SAMPLE_RATE_HZ)

    def decode(self, request: Request) -> Audio:
        return decode_audio(audio_bytes(request), max_seconds=self.max_seconds)

    def batch_key(self, item: Audio) -> int:
        """Sounds share a pass if the longer is at most twice the shorter: all are computed as long as the longest."""
        return max(0, math.ceil(math.log2(item.seconds)))

    def forward(self, items: list[Audio]) -> list[Output]:
        heard = [item for item in items if not item.is_silent]
        features = [self.features(torch.from_numpy(item.samples).to(self.device)) for item in heard]
        at_once = max(1, FRAMES_AT_ONCE // max((len(rows) for rows in features), default=1))
        parts = [self._texts(features[i : i + at_once]) for i in range(0, len(features), at_once)]
        texts = iter([text for part in parts for text in part])
        return [(item, "" if item.is_silent else next(texts)) for item in items]

    def encode(self, output: Output, request: Request) -> dict[str, Any]:
        audio, text = output
        reply = {
            "text": text,
            "seconds": round(audio.seconds, 3),
            "sample_rate": audio.rate_hz,
            "model": MODEL,
            "weights": self.weights,
        }
        declared = declared_rate_hz(request)
        if declared not in (None, audio.rate_hz):
            reply["note"] = f"Content-Type says {declared} Hz, the file's header {audio.rate_hz}; the header was used"
        return reply

    def signature(self) -> Signature:
        return SIGNATURE

    def encode_tensors(self, output: Output, request: Request) -> Mapping[str, Any]:
        audio, text = output
        return {"text": text, "seconds": audio.seconds}

    def _texts(self, features: list[torch.Tensor]) -> list[str]:
        lengths = torch.tensor([len(rows) for rows in features], device=self.device)
        padded = pad_sequence(features, batch_first=True)
        return [text_of(symbols) for symbols in transcribe(self.model, padded, lengths)]


def read_config(context: Context) -> RnntConfig:
    """The model's sizes: from the weights' config.json, or MODEL_CONFIG for random weights.

    Raises:
        WeightsError, ConfigError: another model's config, an unknown key, a size out of range.
    """
    settings = context.model_config()
    try:
        return msgspec.convert(settings, RnntConfig)
    except msgspec.ValidationError as error:
        if context.weights.is_random:
            raise ConfigError(f"{MODEL_CONFIG}={context.env.get(MODEL_CONFIG)!r}: {error}") from error
        raise WeightsError(f"{context.weights.text}: config.json is not that of an RNN-T: {error}") from error


def seconds_allowed(env: Mapping[str, str]) -> float:
    """Longest sound that is taken, by MAX_AUDIO_SECONDS. Raises: ConfigError."""
    text = env.get(MAX_AUDIO_SECONDS) or str(MAX_SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not MIN_SECONDS <= seconds <= LONGEST_SECONDS:
        raise ConfigError(f"{MAX_AUDIO_SECONDS}={text!r}: seconds, {MIN_SECONDS:g}–{LONGEST_SECONDS:g}")
    return seconds
