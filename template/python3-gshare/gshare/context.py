"""What a handler's `load` is given: device, weights, environment, secrets, and the way to build a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gshare.device import Device
from gshare.errors import ConfigError
from gshare.weights import Weights

if TYPE_CHECKING:
    import torch

ModuleT = TypeVar("ModuleT", bound="torch.nn.Module")
MODEL_CONFIG = "MODEL_CONFIG"


@dataclass(frozen=True, slots=True)
class Context:
    """Everything a function may need at its start."""

    device: Device
    weights: Weights
    env: Mapping[str, str]
    secrets_dir: Path

    def build(self, factory: Callable[[], ModuleT], *, rename: Callable[[str], str] | None = None) -> ModuleT:
        """The module that `factory` makes, with the function's weights in it, in eval mode on the device.

        The module is built without memory and given the tensors as they lie in the file. `rename` translates a name in
        the file to the module's own where they differ.

        Raises:
            gshare.errors.WeightsError: weights missing, misshapen or unreadable; the text names them.
        """
        return self.weights.build(factory, self.device.torch_device, rename=rename)

    def model_config(self, builtin: Mapping[str, object] | None = None) -> dict[str, Any]:
        """Settings of the model's architecture: config.json of real weights, or `builtin` for random ones.

        What MODEL_CONFIG says, a JSON object, is laid over the built-in settings.

        Raises:
            ConfigError: MODEL_CONFIG is no JSON object, or stands beside weights that have their own architecture.
            gshare.errors.WeightsError: real weights without a config.json.
        """
        text = self.env.get(MODEL_CONFIG, "")
        own = self.weights.config()
        if own is not None:
            if text:
                raise ConfigError(f"{MODEL_CONFIG} only shapes random: weights; {self.weights.text} has a config.json")
            return own
        try:
            return {**(builtin or {}), **msgspec.json.decode(text or "{}", type=dict[str, Any])}
        except msgspec.MsgspecError as error:
            raise ConfigError(f"{MODEL_CONFIG}={text!r}: not a JSON object: {error}") from error

    def secret(self, name: str) -> str | None:
        """Content of the secret file `name`, without its last line break; None if the function has no such secret."""
        return read_secret(self.secrets_dir, name)


def read_secret(folder: Path, name: str) -> str | None:
    """Content of one secret file, or None where there is none."""
    try:
        return (folder / name).read_text().rstrip("\n")
    except (FileNotFoundError, NotADirectoryError):
        return None
