"""Reads what is added to log files, from one look to the next."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_MOST_BYTES = 64 * 1024


class LogFollower:
    """New lines of some files; what was there before it began is old."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._read = {path: _size(path) for path in paths}

    def new_lines(self) -> list[str]:
        """Whole lines since the last call, of each file the newest 64 KiB. A file that was cut begins anew."""
        return [line for path in self._read for line in self._news(path)]

    def _news(self, path: Path) -> list[str]:
        size, begin = _size(path), self._read[path]
        if size < begin:
            begin = 0
        if size == begin:
            self._read[path] = size
            return []
        begin = max(begin, size - _MOST_BYTES)
        with path.open("rb") as file:
            file.seek(begin)
            whole, newline, _ = file.read(size - begin).rpartition(b"\n")
        self._read[path] = begin + len(whole) + len(newline)
        return whole.decode(errors="replace").splitlines()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
