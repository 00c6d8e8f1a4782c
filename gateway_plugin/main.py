"""Wires things: what runs on one machine, and the entry of each process. Nothing else imports across rooms."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from typing import Any

from flask import Flask
from gunicorn.app.base import BaseApplication

from gateway_plugin.autoscaler.loop import Loop
from gateway_plugin.backends.process import ProcessBackend
from gateway_plugin.counters import Counters
from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.listeners import inherited_listener, keep_offering, listen_tcp, listen_unix
from gateway_plugin.paths import Paths
from gateway_plugin.processes import python_command
from gateway_plugin.redis_server import redis_answers, redis_command
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store
from gateway_plugin.supervisor.child import ChildSpec
from gateway_plugin.supervisor.daemon import Supervisor, become_daemon

HEARTBEAT_LIMIT_S = 20.0
PROBE_TIMEOUT_S = 2.0
API_THREADS = 16
API_BACKLOG = 1024
DATAPLANE = "dataplane-"
_SD_LISTEN_FDS_START = 3

log = logging.getLogger(__name__)


def child_specs(settings: Settings) -> list[ChildSpec]:
    """The processes of one machine, in the order they start; they stop in reverse."""
    paths = Paths(settings.home)
    specs = []
    if not settings.redis_url:
        probe = partial(redis_answers, paths.redis_socket, timeout_s=PROBE_TIMEOUT_S)
        specs.append(ChildSpec(name="redis", argv=tuple(redis_command(paths)), probe=probe))
    api_listener = partial(listen_unix, paths.control_socket, backlog=API_BACKLOG)
    specs.append(ChildSpec(name="api", argv=tuple(python_command("process", "api")), open_listener=api_listener))
    agent_stop_s = settings.drain_timeout_s * 2 + 5
    specs.append(_beating("agent", python_command("process", "agent"), stop_timeout_s=agent_stop_s))
    specs.append(_beating("loop", python_command("process", "loop")))
    for number in range(settings.worker_count()):
        name = f"{DATAPLANE}{number}"
        specs.append(
            ChildSpec(
                name=name,
                argv=tuple(python_command("process", name)),
                open_listener=partial(listen_tcp, settings.bind_host, settings.port),
                stop_timeout_s=settings.drain_timeout_s + 5,
            )
        )
    return specs


def _beating(name: str, argv: list[str], *, stop_timeout_s: float = 10.0) -> ChildSpec:
    return ChildSpec(name=name, argv=tuple(argv), heartbeat_limit_s=HEARTBEAT_LIMIT_S, stop_timeout_s=stop_timeout_s)


def redis_url(settings: Settings) -> str:
    """Of the user's Redis, else of the embedded one."""
    return settings.redis_url or f"unix://{Paths(settings.home).redis_socket}"


def open_store(settings: Settings) -> Store:
    return Store(redis_url(settings))


def run_process(name: str, settings: Settings, *, listen_fd: int) -> None:
    """Run one of the processes of this machine until it is told to stop."""
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    match name:
        case "supervisor":
            run_supervisor(settings)
        case "api":
            run_api(settings, listen_fd=listen_fd)
        case "loop":
            run_loop(settings)
        case "agent":
            run_agent(settings)
        case _:
            run_dataplane(settings, number=int(name.removeprefix(DATAPLANE)), listen_fd=listen_fd)


def run_supervisor(settings: Settings) -> None:
    """Become a daemon and supervise until stopped; returns at once if a supervisor runs already."""
    lock = become_daemon(Paths(settings.home))
    if lock is None:
        log.info("another supervisor holds the lock")
        return
    asyncio.run(Supervisor(settings, child_specs(settings)).run())
    os.close(lock)


def run_agent(settings: Settings) -> None:
    """The node agent, until SIGTERM."""
    from gateway_plugin.node.agent import run_agent as run

    run(settings, _heartbeat(settings, "agent"))


def run_loop(settings: Settings) -> None:
    """The loop, until SIGTERM."""
    paths = Paths(settings.home)
    loop = Loop(
        settings,
        store=open_store(settings),
        backend=ProcessBackend(paths.agent_socket),
        counters=Counters(paths.counters, workers=settings.worker_count()),
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())
    loop.run(_heartbeat(settings, "loop").beat)


def run_dataplane(settings: Settings, *, number: int, listen_fd: int) -> None:
    """Data-plane worker `number`, until SIGTERM."""
    from gateway_plugin.dataplane.worker import run

    listener = inherited_listener(listen_fd)
    keep_offering(Paths(settings.home).supervisor_socket, f"{DATAPLANE}{number}", listener)
    run(settings, number=number, listener=listener)


def run_api(settings: Settings, *, listen_fd: int) -> None:
    """The control API under one gunicorn worker, on the listener the supervisor keeps."""
    # The systemd protocol makes gunicorn use the socket as it is and leave its file alone when it stops.
    if listen_fd != _SD_LISTEN_FDS_START:
        os.dup2(listen_fd, _SD_LISTEN_FDS_START, inheritable=True)
        os.close(listen_fd)
    os.environ |= {"LISTEN_FDS": "1", "LISTEN_PID": str(os.getpid())}
    _ApiServer(settings).run()


class _ApiServer(BaseApplication):  # type: ignore[misc]
    """gunicorn, configured here instead of by a command line."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__()

    def load_config(self) -> None:
        options: dict[str, Any] = {
            "workers": 1,
            "worker_class": "gthread",
            "threads": API_THREADS,
            "keepalive": 75,
            "timeout": 60,
            "graceful_timeout": 10,
            "loglevel": self._settings.log_level.lower(),
            "control_socket_disable": True,
            "post_worker_init": self._offer_listener,
        }
        for key, value in options.items():
            if key in self.cfg.settings:
                self.cfg.set(key, value)

    def load(self) -> Flask:
        from gateway_plugin.openfaas.app import create_app

        return create_app(self._settings, open_store(self._settings))

    def _offer_listener(self, worker: Any) -> None:
        keep_offering(Paths(self._settings.home).supervisor_socket, "api", worker.sockets[0].sock)


def _heartbeat(settings: Settings, name: str) -> Heartbeat:
    return Heartbeat(Paths(settings.home).processes / f"{name}.beat")
