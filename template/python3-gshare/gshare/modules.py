"""Modules built without memory on the meta device, then given their tensors out of safetensors files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from torch import nn
from torch.overrides import TorchFunctionMode

from gshare.errors import WeightsError

ModuleT = TypeVar("ModuleT", bound=nn.Module)
_LEGACY = {".gamma": ".weight", ".beta": ".bias"}
"""Old checkpoints' names for the parameters of a normalisation layer."""
_OPTIONAL = "num_batches_tracked"
"""Training statistics of a batch normalisation that inference never reads; some published files leave them out."""
_NAMES_SHOWN = 6


def empty_module(factory: Callable[[], ModuleT]) -> ModuleT:
    """The module with its shapes, on the meta device: no memory, no initialisation."""
    with torch.device("meta"):
        return factory()


def fill_module(
    module: nn.Module,
    factory: Callable[[], nn.Module],
    *,
    shards: Sequence[Path],
    rename: Callable[[str], str] | None = None,
) -> None:
    """Give an empty module its tensors; buffers that no file holds are computed as `factory` does.

    The tensors are the file's own pages, mapped; they are copied only where the module wants another type.

    Raises:
        WeightsError: tensors missing or of another shape, or a file that is no safetensors; the text names them.
    """
    wanted = module.state_dict(keep_vars=True)
    found = _read(shards, wanted, rename or (lambda name: name))
    _share_ties(wanted, found)
    _refuse_missing(wanted, found)
    _refuse_misshapen(wanted, found)
    state = {name: found[name].to(tensor.dtype) for name, tensor in wanted.items()}
    module.load_state_dict(_as_parameters(wanted, state), assign=True)
    _rebuild_buffers(module, factory)
    _refuse_empty(module)


def _read(
    shards: Sequence[Path], wanted: Mapping[str, torch.Tensor], rename: Callable[[str], str]
) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for shard in shards:
        try:
            with safe_open(shard, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 - not a dict
                    own = _own_name(rename(name), wanted)
                    if own is not None:
                        found[own] = file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise WeightsError(f"{shard.name} cannot be read as safetensors: {error}") from error
    return found


def _own_name(name: str, wanted: Mapping[str, torch.Tensor]) -> str | None:
    """The module's name for a tensor of the file, or None if it has no use for it."""
    if name in wanted:
        return name
    for old, new in _LEGACY.items():
        if name.endswith(old) and (modern := name.removesuffix(old) + new) in wanted:
            return modern
    return None


def _share_ties(wanted: Mapping[str, torch.Tensor], found: dict[str, torch.Tensor]) -> None:
    """Parameters that are one object in the module are one tensor in the file, under one of their names."""
    holder = {id(wanted[name]): tensor for name, tensor in found.items()}
    for name, tensor in wanted.items():
        if name not in found and id(tensor) in holder:
            found[name] = holder[id(tensor)]
        elif name not in found and name.endswith(_OPTIONAL):
            found[name] = torch.zeros(tensor.shape, dtype=tensor.dtype)


def _refuse_missing(wanted: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> None:
    missing = [name for name in wanted if name not in found]
    if missing:
        raise WeightsError(
            f"{len(missing)} of {len(wanted)} tensors are not in the file: {_shown(missing)}; "
            "are these the weights of this architecture?"
        )


def _refuse_misshapen(wanted: Mapping[str, torch.Tensor], found: Mapping[str, torch.Tensor]) -> None:
    wrong = [
        f"{name} is {tuple(found[name].shape)}, the model has {tuple(tensor.shape)}"
        for name, tensor in wanted.items()
        if found[name].shape != tensor.shape
    ]
    if wrong:
        raise WeightsError(f"{len(wrong)} tensors have another shape: {_shown(wrong)}")


def _as_parameters(wanted: Mapping[str, torch.Tensor], state: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The same, with one Parameter object for all names of a tied parameter."""
    made: dict[int, torch.Tensor] = {}
    for name, tensor in wanted.items():
        if isinstance(tensor, nn.Parameter):
            made.setdefault(id(tensor), nn.Parameter(state[name], requires_grad=False))
    return {name: made.get(id(tensor), state[name]) for name, tensor in wanted.items()}


class _ParametersUnfilled(TorchFunctionMode):
    """Skips every in-place operation on a parameter, so that its memory is never touched, let alone filled."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        target = args[0] if args else kwargs.get("tensor")  # torch.nn.init hands its tensor over by name
        if name.endswith("_") and not name.startswith("__") and isinstance(target, nn.Parameter):
            return target
        return func(*args, **kwargs)


def _rebuild_buffers(module: nn.Module, factory: Callable[[], nn.Module]) -> None:
    """Buffers that are not saved (position numbers, masks) are still empty: take them from a real twin."""
    empty = [name for name, buffer in module.named_buffers() if buffer.is_meta]
    if not empty:
        return
    with torch.no_grad(), _ParametersUnfilled():
        computed = dict(factory().named_buffers())
    for name in empty:
        owner, _, leaf = name.rpartition(".")
        module.get_submodule(owner)._buffers[leaf] = computed[name]


def _refuse_empty(module: nn.Module) -> None:
    empty = [name for name, tensor in (*module.named_parameters(), *module.named_buffers()) if tensor.is_meta]
    if empty:
        raise WeightsError(f"{len(empty)} tensors stayed without content: {_shown(empty)}")


def _shown(names: Sequence[str]) -> str:
    rest = len(names) - _NAMES_SHOWN
    return "; ".join(names[:_NAMES_SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
