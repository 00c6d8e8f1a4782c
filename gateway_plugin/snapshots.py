"""Functions' code on the process backend: an image's folder, its digest, and a read-only copy that replicas run.

Replicas never run from the folder that is being edited: a deploy copies it to `code/DIGEST/function/`, so what was
accepted is what runs, a restart included, and an unchanged folder is recognised whatever the image's tag.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway_plugin.errors import BadRequest, CodeStoreError
from gateway_plugin.model import NAME_RULE, valid_name

CODE_BYTES_LIMIT = 64 * 1024**2
"""Largest folder taken as a function's code; weights belong elsewhere."""
KEEP_UNUSED_S = 3600.0
"""How long a snapshot outlives its last use: replicas that still drain may import from it."""
PACKAGE = "function"
"""Name under which the template imports a function's folder."""
HANDLER = "handler.py"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a function: path relative to its folder, with forward slashes, and what it holds."""

    path: str
    content: bytes


class Snapshots:
    """Finds functions' folders under `roots` and keeps copies of them under `store`."""

    def __init__(self, roots: Sequence[Path], store: Path) -> None:
        self._roots = tuple(roots)
        self._store = store

    def take(self, image: str) -> str:
        """Copy the code of `image` where it is not there yet; the digest under which it lies.

        Raises:
            BadRequest: no such folder, or one that cannot be taken (too large, links that lead out, unreadable).
            CodeStoreError: the copy cannot be written.
        """
        folder, root = find_folder(image, self._roots)
        try:
            files = sorted(_read(folder, root), key=lambda file: file.path)
        except OSError as error:
            raise BadRequest(f"{folder}: cannot be read: {error}; check its permissions and deploy again") from error
        digest = digest_of(files)
        try:
            self._keep(digest, files)
        except OSError as error:
            raise CodeStoreError(f"{self._store}: the code of {image!r} cannot be kept: {error}") from error
        return digest

    def retire(self, digest: str) -> None:
        """Count the time that a snapshot is kept from now on: a deploy has just replaced or removed its function."""
        folder = self._store / digest
        if folder.exists():
            os.utime(folder)

    def remove_unused(self, in_use: set[str], *, now: float | None = None) -> list[str]:
        """Remove the snapshots (and half-made ones) not in `in_use` and untouched for KEEP_UNUSED_S; their names."""
        limit = (time.time() if now is None else now) - KEEP_UNUSED_S
        unused = [f for f in _folders(self._store) if f.name not in in_use and f.stat().st_mtime < limit]
        for folder in unused:
            shutil.rmtree(folder)
        return sorted(folder.name for folder in unused)

    def _keep(self, digest: str, files: Sequence[SourceFile]) -> None:
        target = self._store / digest
        if target.exists():
            os.utime(target)  # in use again: a clean-up that runs at the same time must not take it
            return
        self._store.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix=f".{digest[:12]}-", dir=self._store))
        try:
            _write(scratch / PACKAGE, files)
            scratch.chmod(0o755)
            scratch.rename(target)
        except OSError:
            shutil.rmtree(scratch, ignore_errors=True)
            if not target.exists():  # else another deploy of the same code was first, which is as good
                raise


def find_folder(image: str, roots: Sequence[Path]) -> tuple[Path, Path]:
    """(folder, its root) of an image: the last part of its name, looked up under each root in turn.

    Raises:
        BadRequest: with the folders looked at.
    """
    name = image_folder_name(image)
    looked_at = []
    for root in roots:
        folder = root / name
        if _inside(folder, root) and (folder / HANDLER).is_file():
            return folder.resolve(), root.resolve()
        looked_at.append(str(folder))
    raise BadRequest(
        f"image: {image!r} has no folder with a {HANDLER} here; looked at {', '.join(looked_at)}. The process backend "
        "runs only functions of this template: make that folder, or add its parent to GSHARE_FUNCTIONS_PATH"
    )


def image_folder_name(image: str) -> str:
    """`resnet50` of `registry:5000/team/resnet50:1.2@sha256:…`.

    Raises:
        BadRequest: that part breaks the rule for function names.
    """
    name = image.partition("@")[0].rpartition("/")[2].partition(":")[0]
    if not valid_name(name):
        raise BadRequest(
            f"image: {image!r} names folder {name!r}; the last part of an image must match {NAME_RULE}, "
            "since the process backend looks it up as a folder"
        )
    return name


def digest_of(files: Sequence[SourceFile]) -> str:
    """SHA-256 over paths and contents, both with their lengths, of files sorted by path."""
    digest = hashlib.sha256()
    for file in files:
        path = file.path.encode()
        digest.update(b"%d:%d:" % (len(path), len(file.content)) + path + file.content)
    return digest.hexdigest()


def _read(folder: Path, root: Path) -> Iterator[SourceFile]:
    total_bytes = 0
    for path in _walk(folder):
        if not _inside(path, root):
            raise BadRequest(f"{path}: leads out of {root}; copy the file into the function's folder")
        if not path.is_file():
            raise BadRequest(f"{path}: neither a file nor a folder; remove it from the function's folder")
        content = path.read_bytes() if path.stat().st_size <= CODE_BYTES_LIMIT - total_bytes else None
        if content is None or total_bytes + len(content) > CODE_BYTES_LIMIT:
            raise BadRequest(
                f"{folder}: holds more than {CODE_BYTES_LIMIT // 1024**2} MiB; weights belong under "
                f"GSHARE_WEIGHTS_ROOT (file:PATH), not beside {HANDLER}"
            )
        total_bytes += len(content)
        yield SourceFile(path.relative_to(folder).as_posix(), content)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__" or path.suffix == ".pyc":
            continue
        if path.is_dir() and path.is_symlink():
            raise BadRequest(f"{path}: a link to a folder is not followed; copy the folder instead")
        if path.is_dir():
            yield from _walk(path)
        else:
            yield path


def _write(package: Path, files: Sequence[SourceFile]) -> None:
    package.mkdir()
    if all(file.path != "__init__.py" for file in files):
        files = [*files, SourceFile("__init__.py", b"")]
    for file in files:
        path = package / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as out:
            out.write(file.content)
            out.flush()
            os.fsync(out.fileno())  # a snapshot that exists is trusted for ever, also after a power cut
        path.chmod(0o444)


def _inside(path: Path, root: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def _folders(store: Path) -> list[Path]:
    return [path for path in store.iterdir() if path.is_dir()] if store.exists() else []
