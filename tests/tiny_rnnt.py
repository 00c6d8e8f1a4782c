"""An RNN-T that really learned something: to write down tones, a letter for each. Some seconds of training on one core.

It is trained as the real ones are, by the likelihood of the text summed over all alignments (Graves, 2012).
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from functions.rnnt.alphabet import BLANK, SYMBOLS
from functions.rnnt.features import LogMel
from functions.rnnt.model import Rnnt, RnntConfig
from tests.sounds import Samples, tone

TONES_HZ = {"a": 300.0, "b": 500.0, "c": 800.0, "d": 1300.0, "e": 2100.0, "f": 3400.0}
TONE_SECONDS, PAUSE_SECONDS = 0.08, 0.04
REPEATS = 0.2
"""The hard part: two equal tones in a row, of which only the pause says that they are two."""
POOL, BATCH, MAX_LR = 600, 8, 2e-2
CONFIG = RnntConfig(
    encoder_hidden=64,
    encoder_pre_layers=1,
    encoder_post_layers=1,
    prediction_hidden=16,
    prediction_layers=1,
    joint_hidden=64,
)


@dataclass(frozen=True, slots=True)
class Melody:
    """Tones with the text that they stand for."""

    text: str
    samples: Samples


def melody(source: random.Random, *, shortest: int = 2, longest: int = 6, rate_hz: int = 16_000) -> Melody:
    """Random letters of random loudness, in a little noise."""
    letters = list(TONES_HZ)
    text = source.choice(letters)
    for _ in range(source.randint(shortest, longest) - 1):
        text += text[-1] if source.random() < REPEATS else source.choice(letters)
    pause = np.zeros(round(PAUSE_SECONDS * rate_hz))
    parts = [pause]
    for letter in text:
        parts += [tone(TONES_HZ[letter], TONE_SECONDS, rate_hz=rate_hz, level=source.uniform(0.1, 0.4)), pause]
    samples = np.concatenate(parts)
    hiss = np.random.default_rng(source.getrandbits(32)).normal(0, 0.002, len(samples))
    return Melody(text, samples + hiss)


def train_transcriber(*, steps: int = 900, seed: int = 0) -> Rnnt:
    """A model that has learned to write down melodies."""
    source = random.Random(seed)
    heard = [_heard(melody(source)) for _ in range(POOL)]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Rnnt(CONFIG)
        optimizer = torch.optim.Adam(model.parameters())
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=MAX_LR, total_steps=steps)
        for _ in range(steps):
            loss = _loss(model, source.sample(heard, BATCH))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return model.eval()


def write_weights(model: Rnnt, config: RnntConfig, folder: Path) -> None:
    """The model as `file:` weights: safetensors and config."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_bytes(msgspec.json.encode(config))


def transducer_loss(scores: torch.Tensor, symbols: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
    """Negative log likelihood of each text: scores B × S × (U + 1) × symbols, texts B × U padded with BLANK.

    A path writes the blank to go on a step, or a symbol to go on in the text; `reached[u]` is the likelihood of all
    paths that stand at u symbols in the present step.
    """
    logs = scores.log_softmax(-1)
    blank = logs[..., BLANK]
    places = symbols[:, None, :, None].expand(-1, logs.shape[1], -1, -1)
    write = logs[:, :, :-1].gather(-1, places)[..., 0]
    written = pad(write.cumsum(-1), (1, 0))
    reached, lengths = written[:, 0], (symbols != BLANK).sum(-1)
    ends = []
    for step in range(logs.shape[1]):
        if step:
            arrived = reached + blank[:, step - 1]
            reached = written[:, step] + (arrived - written[:, step]).logcumsumexp(-1)
        ends.append((reached + blank[:, step]).gather(1, lengths[:, None])[:, 0])
    return -torch.stack(ends, dim=1).gather(1, steps[:, None] - 1)[:, 0]


def _heard(one: Melody) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and symbols of a melody."""
    features = LogMel(torch.device("cpu"))(torch.from_numpy(one.samples.astype(np.float32)))
    return features, torch.tensor([SYMBOLS.index(letter) for letter in one.text])


def _loss(model: Rnnt, heard: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Mean loss for each symbol of a batch."""
    lengths = torch.tensor([len(features) for features, _ in heard])
    steps, counts = model.encoder(pad_sequence([features for features, _ in heard], batch_first=True), lengths)
    symbols = pad_sequence([text for _, text in heard], batch_first=True, padding_value=BLANK)
    before = pad(model.prediction.embed(symbols.clamp(max=BLANK - 1)), (0, 0, 1, 0))
    predicted, _ = model.prediction.dec_rnn(before)
    scores = model.joint(model.joint.heard(steps)[:, :, None], model.joint.expected(predicted)[:, None])
    return (transducer_loss(scores, symbols, counts) / (symbols != BLANK).sum(-1)).mean()
