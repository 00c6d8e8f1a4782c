"""gunicorn around one replica: one process that serves, with as many threads as it takes requests at once."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import gunicorn.http.parser
from gshare import gunicorn_heads
from gshare.config import ReplicaConfig
from gshare.errors import ConfigError
from gshare.head_limits import GATEWAY_HEADERS, HEADERS_LIMIT
from gshare.orphans import adopt_orphans
from gunicorn.errors import HaltServer

_config = ReplicaConfig.from_env(os.environ)

# A refusal (404, 405, 429, 503) goes out before its request's body has come. gunicorn then takes in the rest, for five
# seconds, or closes the connection behind this many bytes, which many clients see as a reset instead of the refusal.
# Its own number is 64 KiB, less than a photograph, and there is no setting for it.
gunicorn.http.parser._DRAIN_MAX_BYTES = 16 * 1024**2
gunicorn_heads.install()

bind = _config.bind
workers = 1
worker_class = "gthread"
# Two more, so that health, metrics and 429 answer while all requests are in work.
threads = _config.max_inflight + _config.max_queued + 2
preload_app = False  # the model, and CUDA with it, belongs to the worker: a fork would break it
keepalive = 75  # longer than the proxy in front keeps its idle connections, so that it is the proxy who closes
timeout = 300  # for a worker that hangs as a whole; a long request does not count as that
graceful_timeout = math.ceil(_config.drain_timeout_s)
accesslog = None
loglevel = "warning"
control_socket_disable = True
limit_request_line = limit_request_field_size = gunicorn_heads.HEAD_BYTES
limit_request_fields = HEADERS_LIMIT + GATEWAY_HEADERS
forwarder_headers = ""
secure_scheme_headers: dict[str, str] = {}


def on_starting(server: Any) -> None:
    """Refuse what would touch the device before the fork; keep what the function will let go of."""
    adopt_orphans()
    if server.cfg.preload_app:
        from gshare.preload import preload_refusal

        raise ConfigError(preload_refusal(os.environ, Path(__file__).parent))


def when_ready(server: Any) -> None:
    """gunicorn removes a unix socket's file as soon as it is told to stop; while its worker drains it is needed."""
    server.systemd = True  # gunicorn's mark of sockets that are not its own


def on_exit(server: Any) -> None:
    """The worker has gone: now nobody listens at the file any more."""
    for address in server.address:
        if isinstance(address, str):
            Path(address).unlink(missing_ok=True)


def post_worker_init(worker: Any) -> None:
    """The app is there, in the process that serves: take over SIGTERM and begin to load."""
    from gshare.drain import install
    from gshare.malloc import share_pools
    from gshare.server import runtime_of

    share_pools()
    runtime = runtime_of(worker.wsgi)
    install(worker, runtime)
    runtime.start()


def pre_request(worker: Any, request: Any) -> None:
    """A replica that is to stop closes each connection after its answer."""
    from gshare.server import runtime_of

    if runtime_of(worker.wsgi).ending.is_set():
        request.force_close()


def worker_exit(_server: Any, _worker: Any) -> None:
    """Runs in the worker, last of all."""
    from gshare.drain import leave

    leave()


def child_exit(server: Any, _worker: Any) -> None:
    """Runs in the parent: a replica whose serving process died is over, and its node decides what comes next."""
    if server.LISTENERS:
        raise HaltServer("the serving process ended", 1)
