"""The control API's process: one gunicorn worker with threads, on the listener that the supervisor keeps."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from gateway_plugin.counters import Counters
from gateway_plugin.listeners import keep_offering
from gateway_plugin.openfaas.app import create_app
from gateway_plugin.openfaas.routed import until_routed
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store

THREADS = 16
_SD_LISTEN_FDS_START = 3


def run_api(settings: Settings, store: Store, *, listen_fd: int) -> None:
    """Serve until SIGTERM."""
    # The systemd protocol makes gunicorn use the socket as it is and leave its file alone when it stops.
    if listen_fd != _SD_LISTEN_FDS_START:
        os.dup2(listen_fd, _SD_LISTEN_FDS_START, inheritable=True)
        os.close(listen_fd)
    os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    _Server(settings, store).run()


class _Server(BaseApplication):  # type: ignore[misc]
    """gunicorn, configured here instead of by a command line."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings, self._store = settings, store
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "workers": 1,
            "worker_class": "gthread",
            "threads": THREADS,
            "keepalive": 75,
            "timeout": 60,
            "graceful_timeout": 10,
            "loglevel": self._settings.log_level.lower(),
            "control_socket_disable": True,
            "post_worker_init": self._offer_listener,
        }
        for key, value in options.items():
            if key in self.cfg.settings:  # some are newer than the oldest gunicorn we take
                self.cfg.set(key, value)

    def load(self) -> Flask:
        counters = Counters(Paths(self._settings.home).counters, workers=self._settings.worker_count())
        return create_app(self._settings, self._store, routed=until_routed(self._store, counters))

    def _offer_listener(self, worker: Any) -> None:
        keep_offering(Paths(self._settings.home).supervisor_socket, "api", worker.sockets[0].sock)
