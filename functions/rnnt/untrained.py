"""Random weights with which the decoder works about as much as with real ones: a symbol in three steps, roughly.

Freshly initialised, an RNN-T's scores hardly depend on what it hears: one symbol wins for ever, 30 times a step. So two
units of the joint network are given a meaning. *Heard* is one random direction of what the encoder says, *turn* is
which half of the alphabet wrote last, as the prediction network tells it. One unit lets the odd symbols win while heard
is high and it is their turn, the other the even ones while it is low; else the blank wins. After a symbol it is the
other half's turn, so no step writes twice, and sound that does not change writes nothing.
"""

from __future__ import annotations

import torch
from torch import nn

from .alphabet import BLANK, SYMBOLS
from .features import FEATURES
from .model import Prediction, Rnnt, RnntConfig

SYMBOLS_PER_STEP = 1 / 3
_FRAMES = 400
_HISTORIES, _WRITTEN = 64, 8
_FORGET_BIAS = -3.0
"""Of all LSTMs: with the usual 0 what is heard changes too slowly, and turns long past blur the last."""
_TURN_STRENGTH = 20.0
"""Against heard, whose deviation is 1."""
_BLANK_LEAD = 10.0
_WIN = 100.0


def untrained(config: RnntConfig) -> Rnnt:
    """A new model, its joint network set on noise; on the meta device only the shapes."""
    model = Rnnt(config)
    if not model.prediction.embed.weight.is_meta:
        with torch.no_grad():
            _set_up(model)
    return model


def _set_up(model: Rnnt) -> None:
    for part in (model.encoder.pre_rnn, model.encoder.post_rnn, model.prediction.dec_rnn):
        _forget_soon(part.lstm)
    threshold = _scale_heard(model)
    turn_weight = _turn_weight(model.prediction)
    first, last = model.joint.first, model.joint.last
    hidden = len(turn_weight)
    first.weight[1, :-hidden], first.bias[1] = -first.weight[0, :-hidden], -first.bias[0]
    # Unit 0 sees heard + turn and unit 1 -heard - turn - 2, each times its strength: 0 on its turn, else far below.
    for unit, sign in ((0, 1.0), (1, -1.0)):
        first.weight[unit, -hidden:] = sign * turn_weight * _TURN_STRENGTH / 2
        first.bias[unit] -= threshold + unit * _TURN_STRENGTH
        last.weight[:, unit] = 0.0
        last.weight[1 - unit : BLANK : 2, unit] = _WIN
    last.bias[BLANK] = last.bias[:BLANK].max() + _BLANK_LEAD


def _forget_soon(lstm: nn.LSTM) -> None:
    for layer in range(lstm.num_layers):
        getattr(lstm, f"bias_hh_l{layer}").zero_()
        bias: torch.Tensor = getattr(lstm, f"bias_ih_l{layer}").zero_()
        bias[lstm.hidden_size : 2 * lstm.hidden_size] = _FORGET_BIAS


def _scale_heard(model: Rnnt) -> float:
    """Give every unit's view of what is heard mean 0 and deviation 1 over noise; the height that is high for unit 0."""
    steps, _ = model.encoder(torch.randn(1, _FRAMES, FEATURES), torch.tensor([_FRAMES]))
    heard = model.joint.heard(steps[0])
    deviation, first = heard.std(0), model.joint.first
    first.bias.copy_((first.bias - heard.mean(0)) / deviation)
    first.weight[:, : steps.shape[2]] /= deviation[:, None]
    values = model.joint.heard(steps[0])[:, 0].tolist()
    wanted = SYMBOLS_PER_STEP * len(values)
    return next(height for height in (i / 50 for i in range(100)) if _swings(values, height) <= wanted)


def _swings(values: list[float], height: float) -> int:
    """How often the values go from above `height` to below its negative or back."""
    count, sign = 0, 1.0
    for value in values:
        if sign * value > height:
            count, sign = count + 1, -sign
    return count


def _turn_weight(prediction: Prediction) -> torch.Tensor:
    """Direction of the prediction network's output that is -2 when the even symbols are next, 0 when the odd ones are.

    The output is zero at the start, so that the odd ones are first.
    """
    embed = prediction.embed.weight
    side = torch.tensor([-1.0 if symbol % 2 else 1.0 for symbol in range(len(SYMBOLS))])
    embed.mul_(0.1).add_(side[:, None] * torch.randn(embed.shape[1]))
    _, state = prediction.start(_HISTORIES)
    outputs, turns = [], []
    for written in range(1, _WRITTEN + 1):
        symbols = 2 * torch.randint(len(SYMBOLS) // 2, (_HISTORIES,)) + written % 2
        output, state = prediction(symbols, state)
        outputs.append(output.double())
        turns.append(side[symbols].double() - 1)
    solution: torch.Tensor = torch.linalg.lstsq(torch.cat(outputs), torch.cat(turns)[:, None]).solution
    return solution[:, 0].float()
