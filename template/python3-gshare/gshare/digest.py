"""SHA-256 of weights by content, remembered by file identity so that a large file is read through once only."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path


def files_digest(files: Sequence[Path], *, cache: Path) -> str:
    """`sha256:…` of one file's content; of several, that of their digests in order. Names do not count."""
    digests = [_file_digest(file.resolve(), cache / "digests") for file in files]
    if len(digests) == 1:
        return f"sha256:{digests[0]}"
    return "sha256:" + hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _file_digest(file: Path, memory: Path) -> str:
    facts = file.stat()
    identity = f"{file}\n{facts.st_ino}\n{facts.st_size}\n{facts.st_mtime_ns}"
    remembered = memory / hashlib.sha256(identity.encode()).hexdigest()
    try:
        return remembered.read_text()
    except FileNotFoundError:
        pass
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    memory.mkdir(exist_ok=True)
    write_atomically(remembered, digest.encode())
    return digest


def write_atomically(path: Path, content: bytes) -> None:
    """The file appears whole or not at all, whoever else writes it."""
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name[:16]}-")
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    Path(scratch).rename(path)
