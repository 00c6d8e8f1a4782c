"""A repository in a local folder as the Hugging Face hub's cache lays it out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def hub_repository(cache: Path, repo: str, *, revision: str = "main") -> Iterator[Path]:
    """A folder to put files into; when the block ends they lie in the cache: blobs, a snapshot of links, a ref."""
    root = cache / f"models--{repo.replace('/', '--')}"
    commit = hashlib.sha1(f"{repo}@{revision}".encode(), usedforsecurity=False).hexdigest()
    staging = root / "staging"
    staging.mkdir(parents=True)
    yield staging
    blobs, snapshot = root / "blobs", root / "snapshots" / commit
    blobs.mkdir()
    snapshot.mkdir(parents=True)
    for file in sorted(staging.iterdir()):
        blob = blobs / hashlib.sha256(file.read_bytes()).hexdigest()
        file.rename(blob)
        (snapshot / file.name).symlink_to(Path("../../blobs") / blob.name)
    staging.rmdir()
    (root / "refs").mkdir()
    (root / "refs" / revision).write_text(commit)
