"""Runs replicas: start, adopt, watch for their end, stop. Knows processes and sockets, decides nothing."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path

import msgspec
from gshare.wire import (
    PROTOCOL,
    Ack,
    Configure,
    FromReplica,
    Hello,
    LiveConfig,
    Refused,
    State,
    Welcome,
    WireError,
    encode,
)

from gateway_plugin.errors import AgentRefused
from gateway_plugin.model import Device, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.node.replica import Replica
from gateway_plugin.node.schedulers import Scheduler
from gateway_plugin.node.spatial import SpaceOwner, Unplaced
from gateway_plugin.node.spawner import Spawner
from gateway_plugin.node.streams import messages
from gateway_plugin.paths import Paths

log = logging.getLogger(__name__)
RECONNECT_S = 10.0
"""An adopted replica that does not connect within this time is not taken for ready any more."""
CLEAR_GRACE_S = 2.0
"""For answers that are on their way; the device is of no use any more."""
UNPLACED = Unplaced()
_FROM_REPLICA: msgspec.json.Decoder[FromReplica] = msgspec.json.Decoder(FromReplica)


class Runner:
    """The replicas of this node, by id. All methods run in the agent's event loop."""

    def __init__(
        self,
        *,
        paths: Paths,
        devices: Mapping[str, Device],
        spaces: Mapping[str, SpaceOwner],
        schedulers: Mapping[str, Scheduler],
        weights_root: Path,
        exec_timeout_s: float,
        on_change: Callable[[ReplicaStatus, bool], None],
    ) -> None:
        """`spaces` and `schedulers`: one a device, by its id.

        `on_change(status, gone)` is called at every change of a replica.
        """
        self._spaces, self._schedulers = spaces, schedulers
        self._paths = paths
        self._spawner = Spawner(paths=paths, devices=devices, weights_root=weights_root, exec_timeout_s=exec_timeout_s)
        self._on_change = on_change
        self._replicas: dict[str, Replica] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._connections: dict[str, asyncio.StreamWriter] = {}
        self._servers: dict[str, asyncio.Server] = {}
        self._gone: dict[str, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        return tuple(self._replicas[key].status for key in sorted(self._replicas))

    async def adopt(self, *, grace_s: float) -> None:
        """Take over what an earlier agent left: living replicas go on, dead ones are reported as failed.

        One that was being stopped is stopped, now with this grace.
        """
        for folder in sorted(self._paths.replicas.iterdir()):
            replica = Replica.load(folder, on_change=self._changed)
            if replica is None:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            self._replicas[replica.id] = replica
            await self._listen(replica)
            if not self._watch(replica):
                continue
            log.info("%s: adopted, pid %d", replica.id, replica.process.pid)
            self._own(replica)
            await self._register(replica)
            if replica.status.state is ReplicaState.DRAINING:
                self._later(self._end(replica, grace_s))
            asyncio.get_running_loop().call_later(RECONNECT_S, self._check_connected, replica.id)

    async def start(self, spec: ReplicaSpec) -> None:
        """Run a new replica. Raises: AgentRefused: id taken, device unknown or not usable, or it cannot start."""
        await self._space(spec).ready()
        if spec.id in self._replicas:
            raise AgentRefused(f"replica {spec.id} exists already")
        folder = self._paths.replica(spec.id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            replica = self._spawn(spec, folder)
        except (OSError, AgentRefused) as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise AgentRefused(f"replica {spec.id} cannot be started: {error}") from error
        self._replicas[spec.id] = replica
        await self._listen(replica)
        await self._register(replica)
        self._watch(replica)
        self._changed(replica.status)
        log.info("%s: started, pid %d", spec.id, replica.process.pid)

    def _spawn(self, spec: ReplicaSpec, folder: Path) -> Replica:
        self._spawner.prune_logs(known=self._replicas)
        popen, record = self._spawner.spawn(spec, folder, space=self._space(spec))
        self._children[spec.id] = popen
        return Replica(record, folder=folder, on_change=self._changed)

    def stop(self, replica_id: str, *, grace_s: float, reason: str = "stopping") -> None:
        """Stop one that is drained: its device lets go of it, SIGTERM, SIGKILL to its whole session after `grace_s`.

        Returns at once. A dead one is forgotten, an unknown one is done.
        """
        replica = self._replicas.get(replica_id)
        if replica is None or replica.status.state is ReplicaState.DRAINING:
            return
        if not replica.process.alive():
            self._forget(replica)
            return
        replica.drain(reason)
        self._later(self._end(replica, grace_s))

    async def _end(self, replica: Replica, grace_s: float) -> None:
        await self._space(replica.spec).before_stop(replica.process.pid)
        replica.process.send(signal.SIGTERM)
        self._kill_in(grace_s, replica)

    def _kill_in(self, grace_s: float, replica: Replica) -> None:
        asyncio.get_running_loop().call_later(grace_s, replica.process.send_to_session, signal.SIGKILL)

    def configure(self, replica_id: str, live: LiveConfig, *, version: int) -> None:
        """Send new live settings, or keep them for its next connect. Raises: AgentRefused for an unknown id."""
        replica = self._replicas.get(replica_id)
        if replica is None:
            raise AgentRefused(f"no replica {replica_id}")
        replica.configure(live, version)
        self._later(self._put_in_force(replica, version))

    async def _put_in_force(self, replica: Replica, version: int) -> None:
        """The scheduler first: once the replica acknowledges, its new quotas hold."""
        live = replica.spec.live
        if scheduler := self._scheduler(replica.spec):
            await scheduler.resize(replica.id, request=live.quota_request, limit=live.quota_limit)
        connection = self._connections.get(replica.id)
        if connection is not None and replica.spec.live_version == version:  # a newer one is on its way otherwise
            connection.write(encode(Configure(version, live)))

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _register(self, replica: Replica) -> None:
        if scheduler := self._scheduler(replica.spec):
            await scheduler.register(replica.spec, replica.credential, whole=bool(replica.status.degraded))

    def _scheduler(self, spec: ReplicaSpec) -> Scheduler | None:
        return self._schedulers.get(spec.place.device) if spec.place else None

    def judged(self, replica_id: str, ungated: bool) -> None:
        """Whether a replica uses its device without tokens was looked at; unknown ones are none."""
        if replica := self._replicas.get(replica_id):
            replica.judged(ungated=ungated)

    async def stop_all(self, *, grace_s: float) -> None:
        """Stop every replica and wait until the last is gone."""
        waiting = [self._gone[key] for key in self._replicas if self._replicas[key].process.alive()]
        for replica_id in list(self._replicas):
            self.stop(replica_id, grace_s=grace_s)
        for event in waiting:
            await event.wait()

    async def clear(self, device_id: str, reason: str) -> None:
        """Stop every living replica of a device that cannot go on, and wait until the last is gone."""
        on_device = [one for one in self._replicas.values() if one.spec.place and one.spec.place.device == device_id]
        living = [one for one in on_device if one.process.alive()]
        for replica in living:
            log.warning("%s: stopped: %s", replica.id, reason)
            self.stop(replica.id, grace_s=CLEAR_GRACE_S, reason=reason)
            self._kill_in(CLEAR_GRACE_S, replica)  # also one that was being stopped, with a longer grace
        for replica in living:
            await self._gone[replica.id].wait()

    def _own(self, replica: Replica) -> None:
        try:
            self._space(replica.spec).own(replica.spec, replica.process.pid, degraded=replica.status.degraded)
        except OSError as error:
            log.error("%s: cannot be held to its units: %s", replica.id, error)

    def _space(self, spec: ReplicaSpec) -> SpaceOwner:
        return self._spaces.get(spec.place.device, UNPLACED) if spec.place else UNPLACED

    def _changed(self, status: ReplicaStatus) -> None:
        self._on_change(status, False)

    # The replica's process

    def _watch(self, replica: Replica) -> bool:
        self._gone[replica.id] = asyncio.Event()
        pidfd = replica.process.open_pidfd()
        if pidfd is None:
            self._ended(replica)
            return False
        asyncio.get_running_loop().add_reader(pidfd, self._on_exit, replica, pidfd)
        return True

    def _on_exit(self, replica: Replica, pidfd: int) -> None:
        asyncio.get_running_loop().remove_reader(pidfd)
        os.close(pidfd)
        self._ended(replica)

    def _ended(self, replica: Replica) -> None:
        child = self._children.pop(replica.id, None)
        exit_code = child.wait() if child is not None else None
        replica.process.kill_rest_of_session()  # e.g. gunicorn's worker, when the master was killed
        asked = replica.status.state is ReplicaState.DRAINING
        log.log(logging.INFO if asked else logging.WARNING, "%s: ended, exit code %s", replica.id, exit_code)
        replica.ended(exit_code)
        self._space(replica.spec).release(replica.id, asked=asked)
        if scheduler := self._scheduler(replica.spec):
            self._later(scheduler.unregister(replica.id))
        self._gone[replica.id].set()
        if asked:
            self._forget(replica)

    def _forget(self, replica: Replica) -> None:
        del self._replicas[replica.id]
        self._servers.pop(replica.id).close()
        connection = self._connections.pop(replica.id, None)
        if connection is not None:
            connection.close()
        shutil.rmtree(self._paths.replica(replica.id), ignore_errors=True)
        self._on_change(replica.status, True)

    # The replica's connection

    async def _listen(self, replica: Replica) -> None:
        path = self._paths.replica_node(replica.id)
        path.unlink(missing_ok=True)

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._talk(replica, reader, writer)

        self._servers[replica.id] = await asyncio.start_unix_server(talk, str(path))
        path.chmod(0o600)

    async def _talk(self, replica: Replica, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async for message in messages(reader, _FROM_REPLICA):
                if not self._take(replica, message, writer):
                    break
        except WireError as error:
            log.warning("%s: %s", replica.id, error)
        finally:
            writer.close()
            if self._connections.get(replica.id) is writer:
                del self._connections[replica.id]
                replica.disconnected()

    def _take(self, replica: Replica, message: FromReplica, writer: asyncio.StreamWriter) -> bool:
        """Handle one message; False: hang up. Nothing is taken before a Hello with the right credential."""
        if isinstance(message, Hello):
            return self._greet(replica, message, writer)
        if self._connections.get(replica.id) is not writer:
            return False
        if isinstance(message, State):
            if message.state == ReplicaState.READY.value:
                self._own(replica)
            replica.reported(message)
        elif isinstance(message, Ack):
            replica.acknowledged(message)
        return True

    def _greet(self, replica: Replica, hello: Hello, writer: asyncio.StreamWriter) -> bool:
        reason = _refusal(replica, hello)
        if reason:
            log.warning("%s: refused a connection: %s", replica.id, reason)
            writer.write(encode(Refused(reason)))
            return False
        self._connections[replica.id] = writer
        writer.write(encode(Welcome(replica.spec.live_version, replica.spec.live)))
        replica.welcomed()
        return True

    def _check_connected(self, replica_id: str) -> None:
        if replica_id in self._replicas and replica_id not in self._connections:
            self._replicas[replica_id].disconnected()


def _refusal(replica: Replica, hello: Hello) -> str:
    if not replica.knows(hello.credential):
        return "wrong credential"
    if hello.protocol not in (PROTOCOL, PROTOCOL - 1):
        return f"protocol {hello.protocol}, this agent speaks {PROTOCOL}; rebuild the image"
    return ""
