"""Where a function's weights come from: `hf:REPO@REV`, `file:PATH`, `random:SEED`; safetensors only, never pickle.

`file:PATH@sha256:HEX` holds the file to a digest, that of `/_/status`: other content under the same name is refused.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from gshare.config import ReplicaConfig
from gshare.digest import files_digest
from gshare.errors import WeightsError
from gshare.hub import hub_folder
from gshare.share import ShareError, parse_weights

if TYPE_CHECKING:
    import torch

ModuleT = TypeVar("ModuleT", bound="torch.nn.Module")
DEFAULT = "random:0"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
PIN = "@sha256:"


class _Index(msgspec.Struct):
    """What model.safetensors.index.json says."""

    weight_map: dict[str, str]


class Source(Protocol):
    """One kind of origin."""

    @property
    def folder(self) -> Path | None:
        """Folder with config.json, tokenizer and the like; None where there is none."""

    def shards(self, empty: torch.nn.Module, factory: Callable[[], torch.nn.Module], /) -> tuple[Path, ...]:
        """The safetensors files for a module; `empty` is it on the meta device. Raises: WeightsError."""


@dataclass(frozen=True, slots=True)
class FolderSource:
    """Files that exist: a folder as the hub lays them out, or a single safetensors file."""

    folder: Path
    files: tuple[Path, ...]

    def shards(self, _empty: torch.nn.Module, _factory: Callable[[], torch.nn.Module], /) -> tuple[Path, ...]:
        return self.files


@dataclass(frozen=True, slots=True)
class RandomSource:
    """Seeded weights, written once for each architecture and then shared as a file."""

    seed: int
    cache: Path

    @property
    def folder(self) -> None:
        return None

    def shards(self, empty: torch.nn.Module, factory: Callable[[], torch.nn.Module], /) -> tuple[Path, ...]:
        from gshare.seeded import seeded_file

        return (seeded_file(empty, factory, seed=self.seed, cache=self.cache),)


class Weights:
    """The weights of one replica: what was asked, its files, and the digest of what was loaded."""

    def __init__(self, text: str, source: Source, *, cache: Path) -> None:
        self.text = text
        """As it was asked for, e.g. `hf:microsoft/resnet-50@main`."""
        self._source = source
        self._cache = cache
        self._loaded: set[Path] = set()

    @property
    def is_random(self) -> bool:
        return isinstance(self._source, RandomSource)

    @property
    def used(self) -> bool:
        """Whether anything has been loaded from here."""
        return bool(self._loaded)

    def file(self, name: str) -> Path | None:
        """A file that came with the weights (tokenizer, labels), or None."""
        folder = self._source.folder
        return folder / name if folder is not None and (folder / name).is_file() else None

    def json(self, name: str) -> dict[str, Any] | None:
        """A JSON object that came with the weights, or None. Raises: WeightsError if it is not one."""
        path = self.file(name)
        if path is None:
            return None
        try:
            return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        except msgspec.MsgspecError as error:
            raise WeightsError(f"{self.text}: {name} is not a JSON object: {error}") from error

    def config(self) -> dict[str, Any] | None:
        """The model's config.json; None for random weights. Raises: WeightsError if real weights have none."""
        config = self.json(CONFIG)
        if config is None and not self.is_random:
            raise WeightsError(f"{self.text}: no {CONFIG} beside the weights, so the model's shape is unknown")
        return config

    def build(
        self, factory: Callable[[], ModuleT], device: torch.device, *, rename: Callable[[str], str] | None = None
    ) -> ModuleT:
        """As `Context.build` says."""
        from gshare.modules import empty_module, fill_module

        module = empty_module(factory)
        shards = self._source.shards(module, factory)
        try:
            fill_module(module, factory, shards=shards, rename=rename)
        except WeightsError as error:
            raise WeightsError(f"{self.text}: {error}") from error
        self._loaded.update(shards)
        return module.to(device).eval().requires_grad_(False)

    def digest(self) -> str:
        """`sha256:…` of the content of every file loaded so far; empty if there is none."""
        return files_digest(sorted(self._loaded), cache=self._cache) if self._loaded else ""


def open_weights(text: str, config: ReplicaConfig, *, hub_token: str | None) -> Weights:
    """Find the weights named by `text`, downloading from the hub where it must.

    Raises:
        WeightsError: not found, not readable, outside GSHARE_WEIGHTS_ROOT, or without safetensors.
    """
    text = text or DEFAULT
    try:
        kind, _, rest = parse_weights("MODEL_WEIGHTS", text).partition(":")
    except ShareError as error:
        raise WeightsError(str(error)) from error
    cache = cache_folder(config)
    if kind == "random":
        return Weights(text, RandomSource(int(rest), cache), cache=cache)
    if kind == "file":
        path, _, pinned = rest.partition(PIN)
        source = folder_source(_inside_root(path, config.weights_root), text)
        if pinned:
            _refuse_other_digest(source, pinned, path, cache=cache)
        return Weights(text, source, cache=cache)
    repo, _, revision = rest.partition("@")
    return Weights(text, folder_source(hub_folder(repo, revision or "main", token=hub_token), text), cache=cache)


def cache_folder(config: ReplicaConfig) -> Path:
    """Folder of seeded weights and digests, made if it is not there; this user's alone under the temporary one."""
    if config.weights_cache:
        folder = Path(config.weights_cache)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    folder = Path(tempfile.gettempdir()) / f"gshare-weights-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise WeightsError(f"{folder} belongs to somebody else; set GSHARE_WEIGHTS_CACHE to a folder of your own")
    return folder


def folder_source(path: Path, text: str) -> FolderSource:
    """The safetensors at `path`: a file, or a folder with one model in it. Raises: WeightsError."""
    if path.is_file():
        if path.suffix != ".safetensors":
            raise WeightsError(f"{text}: {path.name} is not a .safetensors file; convert it first")
        return FolderSource(path.parent, (path,))
    if (path / INDEX).is_file():
        return FolderSource(path, _indexed(path, text))
    if (path / SINGLE).is_file():
        return FolderSource(path, (path / SINGLE,))
    found = ", ".join(sorted(f.name for f in path.iterdir())[:8]) if path.is_dir() else "no such path"
    raise WeightsError(f"{text}: needs {SINGLE} or {INDEX}; found: {found or 'nothing'}")


def _refuse_other_digest(source: FolderSource, pinned: str, path: str, *, cache: Path) -> None:
    if not re.fullmatch(r"[0-9a-f]{64}", pinned):
        raise WeightsError(f"file:{path}: {PIN}{pinned}: a digest has 64 digits of 0-9 and a-f")
    found = files_digest(source.files, cache=cache)
    if found != f"sha256:{pinned}":
        raise WeightsError(f"file:{path}: its content is {found}, asked for is sha256:{pinned}; which one is right?")


def _indexed(folder: Path, text: str) -> tuple[Path, ...]:
    try:
        names = sorted(set(msgspec.json.decode((folder / INDEX).read_bytes(), type=_Index).weight_map.values()))
    except msgspec.MsgspecError as error:
        raise WeightsError(f"{text}: {INDEX} is not an index of safetensors: {error}") from error
    bad = [name for name in names if Path(name).name != name or not (folder / name).is_file()]
    if bad:
        raise WeightsError(f"{text}: {INDEX} names files that are not there: {', '.join(bad)}")
    return tuple(folder / name for name in names)


def _inside_root(path: str, root: str) -> Path:
    if not root:
        raise WeightsError(f"file:{path}: GSHARE_WEIGHTS_ROOT is not set; file: weights are read from inside it only")
    base = Path(root).resolve()
    found = (base / path).resolve()
    if not found.is_relative_to(base):
        raise WeightsError(f"file:{path}: leads out of GSHARE_WEIGHTS_ROOT ({base}); copy the weights into it")
    if not found.exists():
        raise WeightsError(f"file:{path}: no such file or folder under GSHARE_WEIGHTS_ROOT ({base})")
    return found
