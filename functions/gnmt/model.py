"""GNMT as NVIDIA trains it: LSTM encoder and decoder with attention, under the names of its PyTorch checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple, cast

import msgspec
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, UNKNOWN, BEGIN, END = range(4)
"""The first entries of every vocabulary."""
_NEVER = -30.0
"""A logit beside which every other is likelier."""
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Penalty = Annotated[float, msgspec.Meta(ge=0, le=10)]


class GnmtConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """config.json: the model's shape, how it is searched, and its languages."""

    model_type: str = "gnmt"
    vocab_size: Annotated[int, msgspec.Meta(ge=END + 2, le=1_000_000)] = 32_320
    hidden_size: AtLeastOne = 1024
    num_layers: Annotated[int, msgspec.Meta(ge=2)] = 4
    share_embedding: bool = True
    """Whether encoder and decoder have one embedding."""
    beam_size: Annotated[int, msgspec.Meta(ge=1, le=64)] = 5
    length_penalty: Penalty = 0.6
    coverage_penalty: Penalty = 0.1
    source_language: str = "en"
    target_language: str = "de"


class Attention(nn.Module):
    """Bahdanau's additive attention with a normalised score vector."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.linear_q = nn.Linear(size, size, bias=False)
        self.linear_k = nn.Linear(size, size, bias=False)
        self.linear_att = nn.Parameter(torch.rand(size) - 0.5)
        self.normalize_scalar = nn.Parameter(torch.full((1,), size**-0.5))
        self.normalize_bias = nn.Parameter(torch.zeros(size))

    def keys(self, states: Tensor) -> Tensor:
        """What of the score depends on the source alone, so that it is computed once for a sentence."""
        keys: Tensor = self.linear_k(states) + self.normalize_bias
        return keys

    def forward(self, queries: Tensor, source: Source) -> tuple[Tensor, Tensor]:
        """Contexts and attention [sentences, queries, source] of queries [sentences, queries, hidden]."""
        vector = self.linear_att * (self.normalize_scalar / self.linear_att.norm())
        sums = self.linear_q(queries).unsqueeze(2) + source.keys.unsqueeze(1)
        scores = (sums.tanh_() @ vector).masked_fill(~source.mask.unsqueeze(1), -torch.inf)
        attention: Tensor = scores.softmax(-1)
        return attention @ source.states, attention


@dataclass(frozen=True, slots=True)
class Source:
    """Encoded sentences, padded to the longest: states and keys [sentences, source, hidden], mask without the last."""

    states: Tensor
    keys: Tensor
    mask: Tensor


class Cell(NamedTuple):
    """Memory of one LSTM layer: both [sentences * width, hidden]."""

    hidden: Tensor
    cell: Tensor


class Encoder(nn.Module):
    """First layer in both directions, residuals from the third layer on."""

    def __init__(self, config: GnmtConfig, embedder: nn.Embedding) -> None:
        super().__init__()
        size = config.hidden_size
        widths = [size, 2 * size, *[size] * (config.num_layers - 2)]
        self.embedder = embedder
        self.rnn_layers = nn.ModuleList(
            nn.LSTM(width, size, batch_first=True, bidirectional=number == 0) for number, width in enumerate(widths)
        )

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """States [sentences, source, hidden]; those of padding mean nothing. `lengths` lie on the CPU."""
        packed = pack_padded_sequence(self.embedder(tokens), lengths, batch_first=True, enforce_sorted=False)
        states: Tensor = pad_packed_sequence(self.rnn_layers[0](packed)[0], batch_first=True)[0]
        states, _ = self.rnn_layers[1](states)  # forward layers never see the padding behind a sentence
        for layer in self.rnn_layers[2:]:
            states = layer(states)[0] + states
        return states


class AttentionLayer(nn.Module):
    """The decoder's first layer."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.rnn = nn.LSTM(size, size, batch_first=True)
        self.attn = Attention(size)


class Classifier(nn.Module):
    """Scores of the vocabulary."""

    def __init__(self, config: GnmtConfig) -> None:
        super().__init__()
        self.classifier = nn.Linear(config.hidden_size, config.vocab_size)


class Decoder(nn.Module):
    """The first layer asks the attention; its context is part of every later layer's input. Residuals likewise."""

    def __init__(self, config: GnmtConfig, embedder: nn.Embedding) -> None:
        super().__init__()
        size = config.hidden_size
        self.embedder = embedder
        self.att_rnn = AttentionLayer(size)
        self.rnn_layers = nn.ModuleList(nn.LSTM(2 * size, size, batch_first=True) for _ in range(config.num_layers - 1))
        self.classifier = Classifier(config)

    def layers(self) -> list[nn.LSTM]:
        return [self.att_rnn.rnn, *(cast(nn.LSTM, layer) for layer in self.rnn_layers)]

    def forward(self, tokens: Tensor, memory: Sequence[Cell], source: Source) -> tuple[Tensor, Tensor, list[Cell]]:
        """One step for tokens [sentences, width], with the memory of each layer.

        Returns logits [sentences, width, vocabulary], attention [sentences, width, source] and the new memory.
        """
        first, *later = self.layers()
        cells = [_step(first, self.embedder(tokens.flatten()), memory[0])]
        below = cells[0].hidden
        context, attention = self.att_rnn.attn(below.view(*tokens.shape, -1), source)
        context = context.flatten(0, 1)
        for number, layer in enumerate(later, start=1):
            cells.append(_step(layer, torch.cat((below, context), dim=1), memory[number]))
            below = cells[-1].hidden + (below if number > 1 else 0)
        return self.classifier.classifier(below).view(*tokens.shape, -1), attention, cells


class Gnmt(nn.Module):
    """The whole model."""

    def __init__(self, config: GnmtConfig) -> None:
        super().__init__()
        self.config = config
        embedder, own = (nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=PAD) for _ in range(2))
        self.encoder = Encoder(config, embedder)
        self.decoder = Decoder(config, embedder if config.share_embedding else own)

    def start(self, sentences: Sequence[Sequence[int]], width: int) -> Translation:
        """Encode sentences (tokens with both marks) for a search that keeps `width` hypotheses of each."""
        device = self.decoder.classifier.classifier.weight.device
        tokens = pad_sequence([torch.tensor(s) for s in sentences], batch_first=True, padding_value=PAD)
        lengths = torch.tensor([len(sentence) for sentence in sentences])
        states = self.encoder(tokens.to(device), lengths)
        mask = (torch.arange(tokens.shape[1]) < lengths.unsqueeze(1)).to(device)
        return Translation(self.decoder, Source(states, self.decoder.att_rnn.attn.keys(states), mask), width)


def untrained(config: GnmtConfig) -> Gnmt:
    """For `random:` weights: a model that never ends a sentence by itself, so that its length can be set.

    Left alone, chance would end one in thousands, and some at once.
    """
    model = Gnmt(config)
    with torch.no_grad():
        model.decoder.classifier.classifier.bias[END] = _NEVER
    return model


class Translation:
    """A decoder on its way through some sentences (`gshare.beam.Decoding`)."""

    def __init__(self, decoder: Decoder, source: Source, width: int) -> None:
        blank = source.states.new_zeros(len(source.states) * width, source.states.shape[2])
        self.source = source
        self._decoder = decoder
        self._memory = [Cell(blank, blank) for _ in decoder.layers()]

    def step(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        logits, attention, self._memory = self._decoder(tokens, self._memory, self.source)
        return logits.log_softmax(-1), attention

    def select(self, rows: Tensor, sentences: Tensor | None) -> None:
        self._memory = [Cell(memory.hidden[rows], memory.cell[rows]) for memory in self._memory]
        if sentences is not None:
            kept = self.source
            self.source = Source(kept.states[sentences], kept.keys[sentences], kept.mask[sentences])


def _step(layer: nn.LSTM, inputs: Tensor, memory: Cell) -> Cell:
    """One step for every row. The module's own call prepares for a sequence, at four times the price on a CPU."""
    weights = (layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0)
    return Cell(*torch.lstm_cell(inputs, memory, *cast(tuple[Tensor, Tensor, Tensor, Tensor], weights)))
