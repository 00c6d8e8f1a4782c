"""Who supervises: a locked file that names its holder, so that it can be found even when its socket is gone."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from gateway_plugin.processes import ProcessId, identify


def take(path: Path) -> int | None:
    """Lock the file for this process and write down who that is.

    Returns the lock's descriptor, to be kept open; None if another process holds it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, msgspec.json.encode(identify(os.getpid())))
    return descriptor


def holder(path: Path) -> ProcessId | None:
    """The living process that wrote itself down there."""
    try:
        process = msgspec.json.decode(path.read_bytes(), type=ProcessId)
    except (OSError, msgspec.MsgspecError):
        return None
    return process if process.alive() else None
