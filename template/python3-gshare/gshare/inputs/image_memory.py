"""Room for decoded pictures: how many pixels may be in memory at once, whoever sends them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class PixelBudget:
    """Lets requests in, first come first served, while the pixels of all of them stay within `pixels`."""

    def __init__(self, pixels: int) -> None:
        self._free = pixels
        self._turn = threading.Lock()
        self._returned = threading.Condition()

    @property
    def is_waited_for(self) -> bool:
        """Whether somebody is at the door."""
        return self._turn.locked()

    @contextmanager
    def taken(self, pixels: int) -> Iterator[None]:
        """Room for so many pixels, at most the whole budget; waits for it, keeps it inside the block."""
        with self._turn, self._returned:  # who waits keeps the turn, so that a large picture is not overtaken for ever
            self._returned.wait_for(lambda: self._free >= pixels)
            self._free -= pixels
        try:
            yield
        finally:
            with self._returned:
                self._free += pixels
                self._returned.notify()
