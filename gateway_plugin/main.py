"""Wires things: what runs on one machine, and the entry of each process. Nothing else imports across rooms.

Each process imports its own rooms only when it runs, so that a killed data-plane worker is back in a moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from functools import partial
from typing import TYPE_CHECKING

from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.listeners import inherited_listener, keep_offering, listen_tcp, listen_unix
from gateway_plugin.paths import TOKENS, Paths
from gateway_plugin.processes import python_command
from gateway_plugin.redis_server import redis_answers, redis_command
from gateway_plugin.settings import Settings
from gateway_plugin.supervisor.child import ChildSpec

if TYPE_CHECKING:
    from gateway_plugin.store import Store

HEARTBEAT_LIMIT_S = 20.0
PROBE_TIMEOUT_S = 2.0
API_BACKLOG = 1024
DATAPLANE = "dataplane-"

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
                heartbeat_limit_s=HEARTBEAT_LIMIT_S,
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
    """The door to that Redis."""
    from gateway_plugin.store import Store

    return Store(redis_url(settings))


def run_process(name: str, settings: Settings, *, listen_fd: int) -> None:
    """Run one of the processes of this machine until it is told to stop."""
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    match name:
        case "supervisor":
            run_supervisor(settings)
        case "api":
            from gateway_plugin.api_server import run_api

            run_api(settings, open_store(settings), listen_fd=listen_fd)
        case "loop":
            run_loop(settings)
        case "agent":
            run_agent(settings)
        case _ if name.startswith(TOKENS):
            run_tokens(settings, name)
        case _:
            run_dataplane(settings, number=int(name.removeprefix(DATAPLANE)), listen_fd=listen_fd)


def run_supervisor(settings: Settings) -> None:
    """Become a daemon and supervise until stopped; returns at once if a supervisor runs already."""
    from gateway_plugin.supervisor.daemon import Supervisor, become_daemon

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


def run_tokens(settings: Settings, name: str) -> None:
    """The token scheduler of one device, until SIGTERM. The agent starts it and tells it which device."""
    from gateway_plugin.node.tokens.server import run_token_server

    socket = Paths(settings.home).tokens_socket(int(name.removeprefix(TOKENS)))
    run_token_server(socket, _heartbeat(settings, name))


def run_loop(settings: Settings) -> None:
    """The loop, until SIGTERM."""
    from gateway_plugin.autoscaler.loop import Loop
    from gateway_plugin.backends.process import ProcessBackend
    from gateway_plugin.counters import Counters

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

    name = f"{DATAPLANE}{number}"
    listener = inherited_listener(listen_fd)
    keep_offering(Paths(settings.home).supervisor_socket, name, listener)
    run(settings, number=number, listener=listener, heartbeat=_heartbeat(settings, name))


def _heartbeat(settings: Settings, name: str) -> Heartbeat:
    return Heartbeat(Paths(settings.home).processes / f"{name}.beat")
