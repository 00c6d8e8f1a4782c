"""A sign of life that a stuck process cannot give: the boot clock's reading in a small file.

The boot clock, unlike file times, does not jump, and a machine that slept is not taken for a machine that hung.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


class Heartbeat:
    """Written by one process (`beat`), read by the supervisor (`age_s`)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def beat(self) -> None:
        with contextlib.suppress(OSError):
            self._path.write_text(str(time.monotonic()))

    def age_s(self) -> float | None:
        """Seconds since the last beat; None if there was none."""
        try:
            return time.monotonic() - float(self._path.read_text())
        except (OSError, ValueError):
            return None

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)
