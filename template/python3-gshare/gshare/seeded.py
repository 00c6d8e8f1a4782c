"""`random:SEED`: weights that mean nothing but cost what real ones cost; one file for each architecture and seed."""

from __future__ import annotations

import fcntl
import hashlib
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import nn

from gshare.errors import WeightsError

log = logging.getLogger(__name__)


def seeded_file(empty: nn.Module, factory: Callable[[], nn.Module], *, seed: int, cache: Path) -> Path:
    """The file with the weights that `factory` initialises under `seed`; written by whoever comes first.

    Raises:
        WeightsError: it cannot be written (disk full, no permission).
    """
    path = cache / f"random-{seed}-{architecture_digest(empty)[:24]}.safetensors"
    if path.exists():
        return path
    try:
        with _locked(path.with_suffix(".lock")):
            if not path.exists():
                _write(path, _initialised(factory, seed))
    except (OSError, SafetensorError) as error:
        raise WeightsError(f"random:{seed}: {path} cannot be written: {error}") from error
    return path


def architecture_digest(empty: nn.Module) -> str:
    """Hex digest of everything that shapes a module: its layers with their settings, its tensors, its config."""
    lines = [f"{type(empty).__module__}.{type(empty).__qualname__}", repr(empty), _config_text(empty)]
    lines += [f"{name} {tuple(tensor.shape)} {tensor.dtype}" for name, tensor in empty.state_dict().items()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _config_text(module: nn.Module) -> str:
    config: Any = getattr(module, "config", None)
    return str(config.to_json_string()) if hasattr(config, "to_json_string") else ""


def _initialised(factory: Callable[[], nn.Module], seed: int) -> dict[str, torch.Tensor]:
    """State of a freshly made module; a tied parameter once. The process' own random state is left as it was."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        state = factory().state_dict(keep_vars=True)
    once: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in state.items():
        once.setdefault(id(tensor), (name, tensor))
    return {name: tensor.detach().contiguous() for name, tensor in once.values()}


def _write(path: Path, tensors: dict[str, torch.Tensor]) -> None:
    size_mb = sum(t.numel() * t.element_size() for t in tensors.values()) / 1e6
    log.info("writing seeded weights %s (%.0f MB), once", path.name, size_mb)
    scratch = path.with_suffix(".tmp")  # one name will do under the lock; what a killed writer left is overwritten
    try:
        save_file(tensors, scratch, metadata={"format": "pt"})
        scratch.rename(path)
    finally:
        scratch.unlink(missing_ok=True)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
