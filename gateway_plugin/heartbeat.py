"""A sign of life that a stuck process cannot give: the boot clock's reading in a small file.

The boot clock, unlike file times, does not jump, and a machine that slept is not taken for a machine that hung.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

BEAT_S = 1.0


class Heartbeat:
    """Written by one process (`beat`), read by the supervisor (`age_s`)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def beat(self) -> None:
        with contextlib.suppress(OSError):
            self._path.write_text(str(time.monotonic()))

    async def keep_beating(self) -> None:
        """For ever, from an event loop: a loop that is stuck falls silent."""
        while True:
            self.beat()
            await asyncio.sleep(BEAT_S)

    def age_s(self) -> float | None:
        """Seconds since the last beat; None if there was none."""
        try:
            return time.monotonic() - float(self._path.read_text())
        except (OSError, ValueError):
            return None

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)
