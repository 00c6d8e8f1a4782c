"""The end of the serving process, by SIGTERM or because it cannot go on: what arrives is answered, then it ends.

gunicorn's own way stops accepting at once and loses connections that wait in the listening socket's queue. Here the
worker keeps accepting until nothing has been in work for a while, and only then takes gunicorn's way out, which gives
kept-alive connections two more seconds and says `Connection: close`.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

from gshare.runtime import Runtime

log = logging.getLogger(__name__)

QUIET_S = 0.2
"""So long without a request in work means that the listening socket's queue is empty too."""


def install(worker: Any, runtime: Runtime) -> None:
    """Take SIGTERM over from a gunicorn worker, and end it when its runtime gives up. Call in its main thread."""
    threading.Thread(target=_drain, args=(worker, runtime), name="gshare-drain", daemon=True).start()

    def on_term(_signum: int, _frame: FrameType | None) -> None:
        runtime.ending.set()

    signal.signal(signal.SIGTERM, on_term)
    signal.siginterrupt(signal.SIGTERM, False)


def leave() -> None:
    """End the worker at once with its own exit code: threads that hang in a model must not keep it alive."""
    fault = sys.exc_info()[1]
    code = fault.code if isinstance(fault, SystemExit) else (0 if fault is None else 1)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


def _drain(worker: Any, runtime: Runtime) -> None:
    runtime.ending.wait()
    runtime.drain()
    config = runtime.config
    quiet_s = max(QUIET_S, config.drain_linger_s)
    if not runtime.metrics.in_flight.wait_quiet(quiet_s, timeout_s=config.drain_timeout_s):
        log.warning("still at work after %g s; stopping all the same", config.drain_timeout_s)
    worker.handle_exit(signal.SIGTERM, None)
