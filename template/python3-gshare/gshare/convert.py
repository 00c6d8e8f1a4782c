"""A published torch checkpoint to weights that a function serves: `python -m gshare.convert rnnt CHECKPOINT.pt OUT/`.

OUT then holds model.safetensors and config.json; put it under GSHARE_WEIGHTS_ROOT and deploy with `file:OUT`.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save_file

from gshare.errors import WeightsError
from gshare.gnmt_checkpoint import STAND_INS
from gshare.layouts import CONTAINERS, LAYOUTS
from gshare.weights import CONFIG, SINGLE

_BROKEN = (OSError, RuntimeError, EOFError, ValueError, LookupError, TypeError, AttributeError)
"""What torch.load raises on files that are missing, cut or of another kind."""


def convert(function: str, checkpoint: Path, out: Path) -> int:
    """Write the weights in `checkpoint` for `function` into the folder `out`; how many parameters they have.

    Raises:
        WeightsError: unreadable, another model's, or `out` holds weights already.
    """
    if (out / SINGLE).exists():
        raise WeightsError(f"{out / SINGLE} is there already; remove it, or give another folder")
    loaded = read_checkpoint(checkpoint)
    tensors, config = LAYOUTS[function].apply(parameters_of(loaded, checkpoint))
    files = LAYOUTS[function].files(loaded)
    out.mkdir(parents=True, exist_ok=True)
    # Parameters that were views of one tensor become tensors of their own, as safetensors wants them.
    whole = {name: tensor.float().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    scratch = out / f"{SINGLE}.{os.getpid()}.tmp"
    try:
        save_file(whole, scratch, metadata={"format": "pt"})
        for name, content in files.items():
            (out / name).write_text(content, encoding="utf-8")
        (out / CONFIG).write_bytes(msgspec.json.format(msgspec.json.encode(config)) + b"\n")
        scratch.rename(out / SINGLE)
    finally:
        scratch.unlink(missing_ok=True)
    return sum(tensor.numel() for tensor in whole.values())


def read_checkpoint(path: Path) -> Any:
    """What a torch file holds. Code in it is never run; of objects that are known to lie in some, only data is kept.

    Raises:
        WeightsError: no such file, no torch file, or one with other objects than tensors and plain values.
    """
    try:
        with torch.serialization.safe_globals(STAND_INS):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+) was not an allowed", str(error))
        reason = f"an object of {found[1]}" if found else "or is no torch file"
        raise WeightsError(
            f"{path} holds more than tensors and plain values, which could run code ({reason}); "
            "save its state_dict alone where you trust it"
        ) from error
    except _BROKEN as error:
        reason = f"{type(error).__name__}: {error}"
        raise WeightsError(f"{path} cannot be read as a torch file: {reason}") from error


def parameters_of(loaded: Any, path: Path) -> dict[str, torch.Tensor]:
    """The parameters in what a torch file holds; they may lie under `state_dict` or the like.

    Raises:
        WeightsError: there are none.
    """
    tensors = {name: value for name, value in _parameters(loaded).items() if isinstance(value, torch.Tensor)}
    if not tensors:
        raise WeightsError(f"{path} has no tensors, neither at its top nor under {', '.join(CONTAINERS)}")
    return tensors


def _parameters(loaded: Any) -> Mapping[str, Any]:
    if not isinstance(loaded, Mapping):
        return {}
    inner = next((loaded[key] for key in CONTAINERS if isinstance(loaded.get(key), Mapping)), loaded)
    return {str(name): value for name, value in inner.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line; what cannot be converted is one line on stderr and exit code 1."""
    parser = argparse.ArgumentParser(prog="python -m gshare.convert", description=__doc__)
    parser.add_argument("function", choices=sorted(LAYOUTS), help="the function that will serve the weights")
    parser.add_argument("checkpoint", type=Path, help="the torch file, as published")
    parser.add_argument("out", type=Path, help="folder to write into")
    asked = parser.parse_args(arguments)
    try:
        parameters = convert(asked.function, asked.checkpoint, asked.out)
    except WeightsError as error:
        sys.exit(f"{parser.prog}: {error}")
    sys.stdout.write(f"{asked.out}: {parameters:,} parameters for {asked.function}\n")


if __name__ == "__main__":
    main()
