"""Keeps what a function starts and lets go of below this process, where it is counted as the replica's.

A process whose parent has ended goes to the next ancestor that asked for it, else to the machine's first one, and then
nobody could say whose it is. gunicorn's main process reaps every child, so it may ask; the function runs in another
process, which cannot undo it.
"""

from __future__ import annotations

import ctypes
import logging
import os

log = logging.getLogger(__name__)
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on orphans among this process's descendants become its children."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        log.warning("processes that lose their parent are not kept: prctl: %s", os.strerror(ctypes.get_errno()))
