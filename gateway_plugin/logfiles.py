"""Logs that cannot fill the disk: writers append, and a file over its limit is cut to its newest half in place."""

from __future__ import annotations

from pathlib import Path


def cap_logs(folder: Path, *, max_bytes: int) -> list[Path]:
    """Cut every `*.log` under `folder` that is over the limit; returns those cut.

    Writers hold the file open in append mode, so they go on at its new end. Lines written during the cut may be lost.
    """
    return [path for path in sorted(folder.rglob("*.log")) if _cap(path, max_bytes)]


def _cap(path: Path, max_bytes: int) -> bool:
    try:
        with path.open("r+b") as file:
            size = file.seek(0, 2)
            if size <= max_bytes:
                return False
            file.seek(size - max_bytes // 2)
            file.readline()
            newest = file.read()
            file.seek(0)
            file.truncate()
            file.write(newest)
    except OSError:  # gone, no file, no room: the next look may do better
        return False
    return True


def tail(path: Path, *, lines: int) -> str:
    """The last lines of a log, empty if there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 64 * 1024))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
