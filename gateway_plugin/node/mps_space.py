"""Space on a GPU: SM partitions and memory limits through the device's MPS daemon.

Where MPS does not work, replicas start without it and say so: they then share the device in time only. A fault that one
client causes is everybody's: then all replicas of the device are stopped before the daemon is started anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque

from gateway_plugin.errors import AgentRefused, MpsUnavailable
from gateway_plugin.model import ReplicaSpec
from gateway_plugin.node.log_follower import LogFollower
from gateway_plugin.node.mps import MpsClient, MpsDaemon
from gateway_plugin.node.mps_env import client_environment, gpu_environment
from gateway_plugin.node.mps_faults import Death, Evidence, Fault, judge
from gateway_plugin.node.spatial import Clear

log = logging.getLogger(__name__)
LOOK_S = 5.0
"""Between two looks at a device where nothing happens."""
RETRY_S = 30.0
"""Between two attempts to bring a daemon up that did not come."""
RECOVERY_S = 5.0
"""Longest that a start waits for a device that recovers; the loop tries again later."""
STOP_S = 4.0
"""Longest that a stop waits for the daemon to let go of a client."""


class MpsSpace:
    """`spatial.SpaceOwner` of one GPU or MIG instance."""

    def __init__(self, daemon: MpsDaemon, *, required: bool, look_s: float = LOOK_S) -> None:
        """`required`: a replica that would not be held to its partition is not started at all."""
        self._daemon, self._required, self._look_s = daemon, required, look_s
        self._log = LogFollower([daemon.logs / "control.log", daemon.logs / "server.log"])
        self._masters: dict[str, int] = {}
        """Replica → its process, of those that compute through the daemon."""
        self._clients: dict[int, str] = {}
        """Process of a client → replica; those of replicas that died of late are kept, since a log may name them."""
        self._deaths: deque[Death] = deque(maxlen=16)
        self._settled = asyncio.Event()
        self._settled.set()
        self._look_now = asyncio.Event()
        self._retry_at = 0.0
        self.degraded = ""
        self.last_fault: Fault | None = None

    async def open(self) -> None:
        await self._bring_up()

    async def ready(self) -> None:
        try:
            if not self.degraded and await self._daemon.faulted_servers():
                self._settled.clear()
                self._look_now.set()
        except MpsUnavailable as error:
            self._degrade(error)
        try:
            async with asyncio.timeout(RECOVERY_S):
                await self._settled.wait()
        except TimeoutError as error:
            raise AgentRefused(f"{self._device_id} recovers from a fault; it is tried again") from error
        if self.degraded and self._required:
            raise AgentRefused(f"{self.degraded}; GSHARE_MPS=required starts nothing without MPS")

    def environment(self, spec: ReplicaSpec, /) -> dict[str, str]:
        if self.degraded:
            return gpu_environment(self._daemon.device)
        return client_environment(spec, self._daemon.device, pipes=self._daemon.pipes)

    def admit(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None:
        self.own(spec, pid, degraded=degraded)

    def own(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None:
        if not degraded:
            self._masters[spec.id] = pid

    async def before_stop(self, pid: int) -> None:
        """Outstanding work of a process that just dies can upset the other clients; so it is ended in order."""
        if pid not in self._masters.values() or not self._settled.is_set():
            return
        try:
            async with asyncio.timeout(STOP_S):
                for client in await self._daemon.clients():
                    if _session_of(client) == pid:
                        await self._daemon.terminate(client)
        except (MpsUnavailable, TimeoutError) as error:
            log.warning("process %d is stopped with its MPS client as it is: %s", pid, error or "no answer in time")

    def release(self, replica_id: str, *, asked: bool) -> None:
        if self._masters.pop(replica_id, None) is not None and not asked:
            self._deaths.append(Death(replica_id, time.monotonic()))
            self._look_now.set()

    async def watch(self, clear: Clear) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._look_s):
                    await self._look_now.wait()
            self._look_now.clear()
            try:
                await self.look(clear)
            except Exception:  # the loop's edge: a look that fails must not be the last
                log.exception("%s: cannot be looked after", self._device_id)

    async def close(self) -> None:
        await self._daemon.stop()

    def pids(self) -> frozenset[int]:
        return self._daemon.pids() | frozenset(self._masters.values())

    @property
    def _device_id(self) -> str:
        return self._daemon.device.id

    async def _bring_up(self) -> None:
        try:
            await self._daemon.start(replace=not self._masters)
        except MpsUnavailable as error:
            self._degrade(error)
        else:
            if self.degraded:
                log.info("%s: MPS works; replicas that start from now on are held to their partition", self._device_id)
            self.degraded = ""

    def _degrade(self, error: MpsUnavailable) -> None:
        if str(error) != self.degraded:
            log.error("shared in time only: %s", error)
        self.degraded = str(error)
        self._retry_at = time.monotonic() + RETRY_S

    async def look(self, clear: Clear) -> None:
        """One look: recover from a fault, or bring up a daemon that is down and that nobody uses."""
        fault = judge(await self._evidence())
        if fault is not None and (self._masters or not self._settled.is_set()):
            await self._recover(fault, clear)
        elif self.degraded and not self._masters and time.monotonic() >= self._retry_at:
            await self._bring_up()
        self._settled.set()

    async def _evidence(self) -> Evidence:
        faulted: tuple[int, ...] = ()
        answers = True
        try:
            self._remember(await self._daemon.clients())
            faulted = await self._daemon.faulted_servers()
        except MpsUnavailable:
            answers = False
        return Evidence(
            now_s=time.monotonic(),
            deaths=tuple(self._deaths),
            answers=answers,
            faulted_servers=faulted,
            log_lines=self._log.new_lines(),
            clients=dict(self._clients),
        )

    def _remember(self, clients: tuple[MpsClient, ...]) -> None:
        by_master = {pid: replica for replica, pid in self._masters.items()}
        for client in clients:
            replica = by_master.get(_session_of(client))
            if replica is not None:
                self._clients[client.pid] = replica
        known = {*self._masters, *(death.replica for death in self._deaths)}
        self._clients = {pid: replica for pid, replica in self._clients.items() if replica in known}

    async def _recover(self, fault: Fault, clear: Clear) -> None:
        """Stop everybody, then a new daemon: a server that faulted takes no client until the last old one is gone."""
        self._settled.clear()
        self.last_fault = fault
        log.error("fault on %s: %s; all its replicas are stopped", self._device_id, fault.text)
        await clear(self._device_id, f"fault on {self._device_id}: {fault.text}")
        self._deaths.clear()
        self._clients.clear()
        try:
            await self._daemon.restart()
            self.degraded = ""
        except MpsUnavailable as error:
            self._degrade(error)
        self._log.new_lines()  # what the old one wrote at its end


def _session_of(client: MpsClient) -> int:
    """The replica's first process: a replica has a session of its own; 0 when it is gone."""
    try:
        return os.getsid(client.pid)
    except ProcessLookupError:
        return 0
