"""How published torch checkpoints lie, and what their parameters are called here: one `Layout` for each function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import torch

from gshare.errors import WeightsError
from gshare.gnmt_checkpoint import vocabulary_files

Tensors = Mapping[str, torch.Tensor]
Config = dict[str, int | str]
Files = dict[str, str]
CONTAINERS = ("state_dict", "model_state_dict", "model")
"""Keys under which training programs keep the parameters in a checkpoint."""
PREFIXES = ("module.", "model.")
"""What wrappers such as DistributedDataParallel put before every name."""


@dataclass(frozen=True, slots=True)
class Layout:
    """One published kind of checkpoint."""

    renames: tuple[tuple[str, str], ...]
    """Beginnings of names: the checkpoint's, and ours."""
    unused: tuple[str, ...]
    """Beginnings of names that inference has no use for."""
    config: Callable[[Tensors], Config]
    """The function's config.json, read off the shapes. Raises: KeyError for a tensor that is not there."""
    names: Callable[[Config], Iterable[str]]
    """Every parameter that a model of that config has."""
    files: Callable[[object], Files] = lambda _checkpoint: {}
    """What else of the checkpoint the function needs: names and contents of files. Raises: WeightsError."""

    def apply(self, tensors: Tensors) -> tuple[dict[str, torch.Tensor], Config]:
        """The parameters under the function's names, and its config. Raises: WeightsError naming what does not fit."""
        own = {self._own_name(name): tensor for name, tensor in tensors.items() if not self._is_unused(name)}
        try:
            config = self.config(own)
        except KeyError as error:
            raise WeightsError(f"the checkpoint has no {error.args[0]}; it has {_shown(tensors)}") from error
        wanted = set(self.names(config))
        if missing := wanted - own.keys():
            raise WeightsError(f"{len(missing)} parameters are missing: {_shown(missing)}")
        if unknown := own.keys() - wanted:
            raise WeightsError(f"{len(unknown)} parameters are unknown: {_shown(unknown)}")
        return own, config

    def _own_name(self, name: str) -> str:
        name = _bare(name)
        for theirs, ours in self.renames:
            if name.startswith(theirs):
                return ours + name.removeprefix(theirs)
        return name

    def _is_unused(self, name: str) -> bool:
        return _bare(name).startswith(self.unused)


def lstm_names(prefix: str, layers: int) -> list[str]:
    """Parameters of a torch.nn.LSTM that runs one way."""
    return [
        f"{prefix}.{kind}_{side}_l{layer}"
        for layer in range(layers)
        for kind in ("weight", "bias")
        for side in ("ih", "hh")
    ]


def count_layers(tensors: Tensors, prefix: str) -> int:
    """How many layers the LSTM called `prefix` has; 0 if there is none."""
    pattern = re.compile(re.escape(prefix) + r"\.weight_hh_l(\d+)")
    return sum(pattern.fullmatch(name) is not None for name in tensors)


def _bare(name: str) -> str:
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def _shown(names: Iterable[str], most: int = 6) -> str:
    known = sorted(names)
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


_PRE, _POST, _DECODER = "encoder.pre_rnn.lstm", "encoder.post_rnn.lstm", "prediction.dec_rnn.lstm"


def _rnnt_config(tensors: Tensors) -> Config:
    hidden = tensors[f"{_PRE}.weight_hh_l0"].shape[1]
    return {
        "model_type": "rnnt",
        "encoder_hidden": hidden,
        "encoder_pre_layers": count_layers(tensors, _PRE),
        "encoder_post_layers": count_layers(tensors, _POST),
        "stack": tensors[f"{_POST}.weight_ih_l0"].shape[1] // hidden,
        "prediction_hidden": tensors["prediction.embed.weight"].shape[1],
        "prediction_layers": count_layers(tensors, _DECODER),
        "joint_hidden": tensors["joint.net.0.weight"].shape[0],
    }


def _rnnt_names(config: Config) -> list[str]:
    return [
        *lstm_names(_PRE, int(config["encoder_pre_layers"])),
        *lstm_names(_POST, int(config["encoder_post_layers"])),
        *lstm_names(_DECODER, int(config["prediction_layers"])),
        "prediction.embed.weight",
        *(f"joint.net.{layer}.{kind}" for layer in (0, 3) for kind in ("weight", "bias")),
    ]


RNNT = Layout(
    # Trained without dropout the joint network's last layer has number 2.
    renames=(("joint_net.2.", "joint.net.3."), ("joint.net.2.", "joint.net.3."), ("joint_net.", "joint.net.")),
    unused=("audio_preprocessor.",),
    config=_rnnt_config,
    names=_rnnt_names,
)


def _gnmt_config(tensors: Tensors) -> Config:
    embedding, second = tensors["encoder.embedder.weight"], tensors["decoder.embedder.weight"]
    return {
        "model_type": "gnmt",
        "vocab_size": embedding.shape[0],
        "hidden_size": embedding.shape[1],
        "num_layers": sum(bool(re.fullmatch(r"encoder\.rnn_layers\.\d+\.weight_hh_l0", name)) for name in tensors),
        "share_embedding": torch.equal(embedding, second),
    }


def _gnmt_names(config: Config) -> list[str]:
    layers, attention = int(config["num_layers"]), "decoder.att_rnn.attn"
    encoder = [name for number in range(layers) for name in lstm_names(f"encoder.rnn_layers.{number}", 1)]
    decoder = [name for number in range(layers - 1) for name in lstm_names(f"decoder.rnn_layers.{number}", 1)]
    return [
        *encoder,
        *(f"{name}_reverse" for name in lstm_names("encoder.rnn_layers.0", 1)),
        *lstm_names("decoder.att_rnn.rnn", 1),
        *decoder,
        *(f"{part}.embedder.weight" for part in ("encoder", "decoder")),
        *(f"{attention}.{name}" for name in ("linear_q.weight", "linear_k.weight", "linear_att")),
        *(f"{attention}.{name}" for name in ("normalize_scalar", "normalize_bias")),
        *(f"decoder.classifier.classifier.{kind}" for kind in ("weight", "bias")),
    ]


GNMT = Layout(renames=(), unused=(), config=_gnmt_config, names=_gnmt_names, files=vocabulary_files)

LAYOUTS: Mapping[str, Layout] = {"rnnt": RNNT, "gnmt": GNMT}
"""By the function's name."""
