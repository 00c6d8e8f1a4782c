"""In-flight numbers that all data-plane workers and the loop share: one mmap of cells [worker][slot].

Each cell has one writer, its worker, and is an aligned 64-bit word, so there is no lock. A row begins with the version
of the routing table that its worker has applied: once every row shows the version without some replica and that
replica's column sums to zero, nobody can send it anything any more.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

SLOTS = 4096
"""Replicas at once on one machine."""
_ROW_WORDS = SLOTS + 1


class Counters:
    """The whole table, opened by any number of processes; created zeroed where it does not exist."""

    def __init__(self, path: Path, *, workers: int) -> None:
        """Raises: OSError if the file cannot be made."""
        self.workers = workers
        size = workers * _ROW_WORDS * 8
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(descriptor).st_size < size:
                os.ftruncate(descriptor, size)
            self._map = mmap.mmap(descriptor, size)
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map).cast("q")

    def in_flight(self, slot: int) -> int:
        """Requests in flight on the replica in `slot`, summed over workers."""
        words = self._words
        return sum(words[row * _ROW_WORDS + 1 + slot] for row in range(self.workers))

    def column(self, slot: int) -> memoryview:
        """One word for each worker: the cells of `slot`, live; for those who sum them often. Drop it before `close`."""
        return self._words[1 + slot :: _ROW_WORDS]

    def applied_version(self) -> int:
        """The oldest routing-table version that some worker still uses; 0 while one has none."""
        return min(self._words[row * _ROW_WORDS] for row in range(self.workers))

    def worker(self, number: int) -> WorkerRow:
        """The row that worker `number` alone writes."""
        return WorkerRow(self._words[number * _ROW_WORDS : (number + 1) * _ROW_WORDS])

    def close(self) -> None:
        self._words.release()
        self._map.close()


class WorkerRow:
    """One worker's cells."""

    def __init__(self, words: memoryview) -> None:
        self._words = words

    def clear(self) -> None:
        """Forget what an earlier process of the same number left."""
        self._words[:] = memoryview(bytes(len(self._words) * 8)).cast("q")

    def add(self, slot: int, change: int) -> None:
        self._words[1 + slot] += change

    def set_applied_version(self, version: int) -> None:
        self._words[0] = version

    def release(self) -> None:
        self._words.release()
