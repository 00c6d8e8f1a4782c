"""A device of the benchmark's own: its token scheduler, kept running as the agent does, in a home of its own."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import socket
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gshare.config import ReplicaConfig
from gshare.wire import Channel, LiveConfig, WireError, connect

from bench.figures import BenchError
from gateway_plugin.model import Device, Place, ReplicaSpec
from gateway_plugin.node.schedulers import Scheduler
from gateway_plugin.node.tokens.protocol import Answer, AskLedger, Entry, Ledger
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings

DEVICE = "cpu:0"
PATIENCE_S = 30.0
POLL_S = 0.01
Result = TypeVar("Result")
_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class Member:
    """One that may ask for tokens."""

    name: str
    config: ReplicaConfig
    """What a replica would be told."""


def device_s(entry: Entry) -> float:
    """Device time of a member so far, that of the token it holds included."""
    return entry.used_s + entry.held_s


class Stage:
    """The agent's part of time sharing on one device. Its methods block; any thread may call them."""

    def __init__(self, home: Path, *, cores: tuple[int, ...], weights_cache: Path) -> None:
        self._paths = Paths(home)
        self._paths.create()
        self._device = Device(id=DEVICE, kind="cpu", units=len(cores), memory_bytes=0, cores=cores)
        self._weights_cache = weights_cache
        self._settings = Settings(home=home)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="bench-stage", daemon=True)
        self._thread.start()
        self._scheduler = self._do(self._open())
        self._wait_for(lambda ledger: ledger.device == DEVICE)

    def join(self, name: str, *, units: tuple[int, ...], request: float, limit: float) -> Member:
        """A member of these units (places in `cores`) and quotas; its socket is there when this returns."""
        spec = ReplicaSpec(
            id=name,
            function=f"{name}.bench",
            revision="bench",
            code_digest="",
            slot=0,
            place=Place(DEVICE, units),
            live=LiveConfig(quota_request=request, quota_limit=limit),
        )
        credential = secrets.token_hex(16)
        self._paths.replica(name).mkdir()
        self._do(self._scheduler.register(spec, credential))
        self._wait_for(lambda ledger: any(entry.replica == name for entry in ledger.entries))
        config = ReplicaConfig(
            replica=name,
            device=DEVICE,
            cpus=",".join(str(self._device.cores[unit]) for unit in units),
            quota_request=request,
            quota_limit=limit,
            token_socket=str(self._scheduler.socket_of(name)),
            credential=credential,
            weights_cache=str(self._weights_cache),
        )
        return Member(name, config)

    def outsider(self, *, units: tuple[int, ...]) -> ReplicaConfig:
        """What a worker is told that runs on these units without asking anybody."""
        cpus = ",".join(str(self._device.cores[unit]) for unit in units)
        return ReplicaConfig(device=DEVICE, cpus=cpus, weights_cache=str(self._weights_cache))

    def resize(self, member: Member, *, request: float, limit: float) -> None:
        """New quotas; they are in force when this returns."""
        self._do(self._scheduler.resize(member.name, request=request, limit=limit))

    def leave(self, member: Member) -> None:
        self._do(self._scheduler.unregister(member.name))
        shutil.rmtree(self._paths.replica(member.name), ignore_errors=True)

    def entry(self, member: Member) -> Entry:
        """What the ledger says of it at this moment. Raises: BenchError."""
        for entry in self._ledger().entries:
            if entry.replica == member.name:
                return entry
        raise BenchError(f"the token scheduler has forgotten {member.name}")

    def kill_scheduler(self) -> None:
        """SIGKILL; the agent's part notices and starts it again."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.connect(str(self._paths.tokens_socket(0)))
            peer = door.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, _, _ = _CREDENTIALS.unpack(peer)
        os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        self._do(self._scheduler.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._paths.remove_run()

    async def _open(self) -> Scheduler:
        scheduler = Scheduler(self._device, 0, paths=self._paths, settings=self._settings)
        scheduler.open()
        return scheduler

    def _do(self, work: Coroutine[None, None, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)

    def _wait_for(self, condition: Callable[[Ledger], bool]) -> None:
        """Until the scheduler is there, and its ledger like that. Raises: BenchError."""
        until_s = time.monotonic() + PATIENCE_S
        while not self._now(condition):
            if time.monotonic() > until_s:
                raise BenchError(f"the token scheduler did not get ready within {PATIENCE_S:g} s")
            time.sleep(POLL_S)

    def _now(self, condition: Callable[[Ledger], bool]) -> bool:
        try:
            return condition(self._ledger())
        except (OSError, WireError):
            return False

    def _ledger(self) -> Ledger:
        """Raises: OSError, WireError: it is away."""
        channel: Channel[Answer] = connect(str(self._paths.tokens_socket(0)), Answer, timeout_s=PATIENCE_S)
        try:
            channel.send(AskLedger())
            answer = channel.receive()
        finally:
            channel.close()
        assert isinstance(answer, Ledger)
        return answer


@contextmanager
def stage(*, cores: tuple[int, ...], weights_cache: Path) -> Iterator[Stage]:
    """A device with these cores, for the length of the block."""
    home = Path(tempfile.mkdtemp(prefix="gs-bench-"))
    try:
        made = Stage(home, cores=cores, weights_cache=weights_cache)
        try:
            yield made
        finally:
            made.close()
    finally:
        shutil.rmtree(home, ignore_errors=True)
