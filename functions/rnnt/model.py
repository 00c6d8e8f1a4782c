"""The RNN transducer of MLPerf Inference: encoder, prediction and joint network, parameters named as in its checkpoint.

Shapes: B utterances, T frames of features, S steps of the encoder (T ÷ `stack`, rounded up), H hidden units.
"""

from __future__ import annotations

from typing import Annotated, Literal, cast

import msgspec
import torch
from torch import nn
from torch.nn.functional import linear, pad

from .alphabet import BLANK, SYMBOLS
from .features import FEATURES

Size = Annotated[int, msgspec.Meta(ge=2, le=8192)]
Count = Annotated[int, msgspec.Meta(ge=1, le=16)]
State = tuple[torch.Tensor, torch.Tensor]
"""Hidden and cell state of an LSTM, each layers × B × H."""


class RnntConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sizes of the model; the defaults are MLPerf's (45 million parameters)."""

    model_type: Literal["rnnt"] = "rnnt"
    encoder_hidden: Size = 1024
    encoder_pre_layers: Count = 2
    encoder_post_layers: Count = 3
    stack: Count = 2
    """Frames that become one step between the encoder's two halves."""
    prediction_hidden: Size = 320
    prediction_layers: Count = 2
    joint_hidden: Size = 512


class Recurrent(nn.Module):
    """An LSTM under the name that it has in the checkpoint."""

    def __init__(self, inputs: int, hidden: int, *, layers: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, layers, batch_first=True)

    def forward(self, inputs: torch.Tensor, state: State | None = None) -> tuple[torch.Tensor, State]:
        outputs, state = self.lstm(inputs, state)
        return outputs, state


class Encoder(nn.Module):
    """Features to what is heard at each step."""

    def __init__(self, config: RnntConfig) -> None:
        super().__init__()
        hidden, self.stack = config.encoder_hidden, config.stack
        self.pre_rnn = Recurrent(FEATURES, hidden, layers=config.encoder_pre_layers)
        self.post_rnn = Recurrent(hidden * self.stack, hidden, layers=config.encoder_post_layers)

    def forward(self, features: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """B × T × FEATURES, padded, with each utterance's frames: B × S × H with each utterance's steps.

        Padding stands behind an utterance and the LSTMs run forwards, so it can reach valid steps only where the last
        frames are stacked: there it is made zero.
        """
        frames, _ = self.pre_rnn(features)
        padding = torch.arange(frames.shape[1], device=frames.device) >= lengths[:, None]
        frames = frames.masked_fill(padding[:, :, None], 0.0)
        frames = pad(frames, (0, 0, 0, -frames.shape[1] % self.stack))
        steps, _ = self.post_rnn(frames.reshape(len(frames), -1, frames.shape[2] * self.stack))
        return steps, (lengths + self.stack - 1) // self.stack


class Prediction(nn.Module):
    """The symbols so far to what may come next."""

    def __init__(self, config: RnntConfig) -> None:
        super().__init__()
        hidden = config.prediction_hidden
        self.embed = nn.Embedding(len(SYMBOLS), hidden)
        self.dec_rnn = Recurrent(hidden, hidden, layers=config.prediction_layers)

    def start(self, utterances: int) -> tuple[torch.Tensor, State]:
        """B × H and the state before the first symbol, for which a zero vector stands."""
        weight = self.embed.weight
        return self._advance(weight.new_zeros(utterances, 1, weight.shape[1]), None)

    def forward(self, symbols: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """B × H and the new state, after one more symbol for each of B utterances."""
        return self._advance(self.embed(symbols)[:, None], state)

    def _advance(self, inputs: torch.Tensor, state: State | None) -> tuple[torch.Tensor, State]:
        outputs, state = self.dec_rnn(inputs, state)
        return outputs[:, 0], state


class Joint(nn.Module):
    """What is heard and what may come next to scores of the symbols and the blank.

    The first layer is linear in both, so its two halves are computed apart: once a step, and once a symbol. The dropout
    is for the checkpoint's sake, in which the last layer has number 3.
    """

    def __init__(self, config: RnntConfig) -> None:
        super().__init__()
        self._heard = config.encoder_hidden
        self.net = nn.Sequential(
            nn.Linear(config.encoder_hidden + config.prediction_hidden, config.joint_hidden),
            nn.ReLU(),
            nn.Dropout(),
            nn.Linear(config.joint_hidden, BLANK + 1),
        )

    def heard(self, steps: torch.Tensor) -> torch.Tensor:
        """The encoder's half of the first layer, with its bias."""
        return linear(steps, self.first.weight[:, : self._heard], self.first.bias)

    def expected(self, predicted: torch.Tensor) -> torch.Tensor:
        """The prediction network's half of the first layer."""
        return linear(predicted, self.first.weight[:, self._heard :])

    def forward(self, heard: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
        """Scores (logits) of the symbols, the blank last, from the two halves."""
        scores: torch.Tensor = self.last(torch.relu(heard + expected))
        return scores

    @property
    def first(self) -> nn.Linear:
        return cast("nn.Linear", self.net[0])

    @property
    def last(self) -> nn.Linear:
        return cast("nn.Linear", self.net[-1])


class Rnnt(nn.Module):
    """The three networks together; `gshare`'s seeded weights and the converter know it by these names."""

    def __init__(self, config: RnntConfig) -> None:
        super().__init__()
        self.encoder = Encoder(config)
        self.prediction = Prediction(config)
        self.joint = Joint(config)
