"""The supervisor itself: one event loop over children, signals and its own socket."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec
from gshare.orphans import adopt_orphans
from gshare.wire import FrameReader, WireError, encode

from gateway_plugin.listeners import listen_unix
from gateway_plugin.logfiles import cap_logs
from gateway_plugin.paths import Paths
from gateway_plugin.processes import kill_children, reap_orphans
from gateway_plugin.settings import Settings
from gateway_plugin.supervisor.child import Child, ChildSpec
from gateway_plugin.supervisor.lock import take
from gateway_plugin.supervisor.protocol import AskStatus, AskStop, Offer, Processes, Request

log = logging.getLogger(__name__)
HEARTBEAT_CHECK_S = 1.0
PROBE_S = 5.0
LOG_CHECK_S = 30.0
_REQUEST: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


class Supervisor:
    """Starts the children in order, keeps them running, stops them in reverse order of the list."""

    def __init__(self, settings: Settings, specs: Sequence[ChildSpec]) -> None:
        self._settings = settings
        self._paths = Paths(settings.home)
        env = child_environment(settings)
        self._children = [
            Child(spec, paths=self._paths, env=env, backoff_max_s=settings.backoff_max_s) for spec in specs
        ]
        self._stop = asyncio.Event()
        self._askers: list[socket.socket] = []
        """Connections that asked to stop: answered when all is down."""
        self._run_folder = _inode(self._paths.run)

    async def run(self) -> None:
        """Until SIGTERM, SIGINT or AskStop, or the run folder is removed; then all is stopped, nothing is left."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        listener = listen_unix(self._paths.supervisor_socket)
        listener.setblocking(False)
        loop.add_reader(listener, self._accept, listener)
        for child in self._children:
            child.begin()
        watch = asyncio.ensure_future(self._watch())
        await self._stop.wait()
        watch.cancel()
        for child in reversed(self._children):
            await child.stop()
        loop.remove_reader(listener)
        listener.close()
        kill_children()  # what functions started and left behind, in sessions of its own
        if _inode(self._paths.run) == self._run_folder:
            self._paths.remove_run()
        self._answer_askers()

    async def _watch(self) -> None:
        ticks = 0
        while True:
            await asyncio.sleep(HEARTBEAT_CHECK_S)
            ticks += 1
            self._stop_if_removed()
            for child in self._children:
                child.check_heartbeat()
            if ticks % int(PROBE_S / HEARTBEAT_CHECK_S) == 0:
                await asyncio.gather(*(child.check_probe() for child in self._children))
            if ticks % int(LOG_CHECK_S / HEARTBEAT_CHECK_S) == 0:
                cap_logs(self._paths.logs, max_bytes=self._settings.log_max_bytes)

    def _stop_if_removed(self) -> None:
        """Without its sockets and records nobody could find, stop or adopt this machine any more."""
        if _inode(self._paths.run) != self._run_folder:
            log.error("%s was removed: stopping everything", self._paths.run)
            self._stop.set()

    def _reap(self) -> None:
        reap_orphans({child.popen.pid: child.popen for child in self._children if child.popen is not None})

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            connection.setblocking(False)
            asyncio.get_running_loop().add_reader(connection, self._read, connection, FrameReader())

    def _read(self, connection: socket.socket, frames: FrameReader) -> None:
        descriptors: list[int] = []
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, 65536, 4)
            if not data:
                raise WireError("closed")
            for body in frames.feed(data):
                self._handle(connection, _REQUEST.decode(body), descriptors)
        except BlockingIOError:
            return
        except (OSError, WireError, msgspec.MsgspecError):
            self._hang_up(connection)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _handle(self, connection: socket.socket, request: Request, descriptors: list[int]) -> None:
        match request:
            case Offer(name=name):
                for child in self._children:
                    if child.spec.name == name and descriptors:
                        child.offer(socket.socket(fileno=descriptors.pop(0)))
            case AskStatus():
                connection.send(encode(self._processes()))
            case AskStop():
                self._askers.append(connection)
                self._stop.set()

    def _processes(self) -> Processes:
        return Processes(tuple(child.status() for child in self._children), settings=self._settings.to_env())

    def _hang_up(self, connection: socket.socket) -> None:
        asyncio.get_running_loop().remove_reader(connection)
        if connection in self._askers:
            self._askers.remove(connection)
        connection.close()

    def _answer_askers(self) -> None:
        for connection in self._askers:
            with contextlib.suppress(OSError):
                connection.send(encode(self._processes()))
            connection.close()


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def child_environment(settings: Settings) -> dict[str, str]:
    """This process's environment with every setting spelled out, so that children agree."""
    return dict(os.environ) | settings.to_env() | {"PYTHONUNBUFFERED": "1"}


def become_daemon(paths: Paths) -> int | None:
    """Detach (double fork, setsid), take the lock, become the reaper of orphans. Only the daemon returns.

    Returns the lock's descriptor, to be kept open; None if another supervisor holds it.
    """
    if os.fork() > 0:
        os._exit(0)
    os.setsid()
    if os.fork() > 0:
        os._exit(0)
    descriptor = take(paths.supervisor_lock)
    if descriptor is not None:
        adopt_orphans()
    return descriptor
