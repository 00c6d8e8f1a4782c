"""Runs replicas: start, adopt, watch for their end, stop. Knows processes and sockets, decides nothing."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
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
from gateway_plugin.node.launch import launch_of
from gateway_plugin.node.replica import Replica, ReplicaRecord
from gateway_plugin.node.streams import messages
from gateway_plugin.paths import Paths
from gateway_plugin.processes import identify, spawn
from gateway_plugin.snapshots import HANDLER, PACKAGE

log = logging.getLogger(__name__)
REPLICA_NICENESS = 10
"""Below gateway and agent, so that they stay quick on a busy CPU device."""
KEPT_LOGS = 50
RECONNECT_S = 10.0
"""An adopted replica that does not connect within this time is not taken for ready any more."""
_FROM_REPLICA: msgspec.json.Decoder[FromReplica] = msgspec.json.Decoder(FromReplica)


class Runner:
    """The replicas of this node, by id. All methods run in the agent's event loop."""

    def __init__(
        self,
        *,
        paths: Paths,
        devices: Mapping[str, Device],
        weights_root: Path,
        exec_timeout_s: float,
        on_change: Callable[[ReplicaStatus, bool], None],
    ) -> None:
        """`on_change(status, gone)` is called at every change of a replica."""
        self._paths, self._devices, self._weights_root = paths, devices, weights_root
        self._exec_timeout_s = exec_timeout_s
        self._on_change = on_change
        self._replicas: dict[str, Replica] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._connections: dict[str, asyncio.StreamWriter] = {}
        self._servers: dict[str, asyncio.Server] = {}
        self._gone: dict[str, asyncio.Event] = {}

    def statuses(self) -> tuple[ReplicaStatus, ...]:
        return tuple(self._replicas[key].status for key in sorted(self._replicas))

    async def adopt(self) -> None:
        """Take over what an earlier agent left: living replicas go on, dead ones are reported as failed."""
        for folder in sorted(self._paths.replicas.iterdir()):
            replica = Replica.load(folder, on_change=self._changed)
            if replica is None:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            self._replicas[replica.id] = replica
            await self._listen(replica)
            if self._watch(replica):
                log.info("%s: adopted, pid %d", replica.id, replica.process.pid)
                asyncio.get_running_loop().call_later(RECONNECT_S, self._check_connected, replica.id)

    async def start(self, spec: ReplicaSpec) -> None:
        """Run a new replica. Raises: AgentRefused: id taken, device unknown, or the program cannot start."""
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
        self._watch(replica)
        self._changed(replica.status)
        log.info("%s: started, pid %d", spec.id, replica.process.pid)

    def _spawn(self, spec: ReplicaSpec, folder: Path) -> Replica:
        self._require_code(spec)
        credential = secrets.token_hex(16)
        launch = launch_of(
            spec,
            paths=self._paths,
            device=self._device(spec),
            credential=credential,
            weights_root=self._weights_root,
            exec_timeout_s=self._exec_timeout_s,
            base_env=os.environ,
        )
        self._prune_logs()
        popen = spawn(launch.argv, env=launch.env, log=self._paths.replica_log(spec.id), cwd=launch.cwd)
        self._children[spec.id] = popen
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, popen.pid, REPLICA_NICENESS)
        process = identify(popen.pid)
        assert process is not None  # our child, not yet waited for
        now = time.time()
        status = ReplicaStatus(
            spec=spec,
            state=ReplicaState.STARTING,
            reason="starting",
            pid=popen.pid,
            endpoint=f"unix:{self._paths.replica_http(spec.id)}",
            started_at=now,
            since=now,
        )
        record = ReplicaRecord(status=status, credential=credential, process=process)
        replica = Replica(record, folder=folder, on_change=self._changed)
        try:
            replica.save()
        except OSError:  # nobody would know of it
            process.send_to_session(signal.SIGKILL)
            self._children.pop(spec.id).wait()
            raise
        return replica

    def _require_code(self, spec: ReplicaSpec) -> None:
        """Without its snapshot a replica would find the template's starter in its place, and serve that."""
        handler = self._paths.code / spec.code_digest / PACKAGE / HANDLER
        if not handler.is_file():
            raise AgentRefused(f"its code is gone: no {handler}; deploy the function again")

    def stop(self, replica_id: str, *, grace_s: float) -> None:
        """SIGTERM now, SIGKILL to its whole session after `grace_s`; a dead one is forgotten. Unknown ids are done."""
        replica = self._replicas.get(replica_id)
        if replica is None or replica.status.state is ReplicaState.DRAINING:
            return
        if not replica.process.alive():
            self._forget(replica)
            return
        replica.drain()
        replica.process.send(signal.SIGTERM)
        asyncio.get_running_loop().call_later(grace_s, replica.process.send_to_session, signal.SIGKILL)

    def configure(self, replica_id: str, live: LiveConfig, *, version: int) -> None:
        """Send new live settings, or keep them for its next connect. Raises: AgentRefused for an unknown id."""
        replica = self._replicas.get(replica_id)
        if replica is None:
            raise AgentRefused(f"no replica {replica_id}")
        replica.configure(live, version)
        connection = self._connections.get(replica_id)
        if connection is not None:
            connection.write(encode(Configure(version, live)))

    async def stop_all(self, *, grace_s: float) -> None:
        """Stop every replica and wait until the last is gone."""
        waiting = [self._gone[key] for key in self._replicas if self._replicas[key].process.alive()]
        for replica_id in list(self._replicas):
            self.stop(replica_id, grace_s=grace_s)
        for event in waiting:
            await event.wait()

    def _device(self, spec: ReplicaSpec) -> Device | None:
        if spec.place is None:
            return None
        if spec.place.device not in self._devices:
            raise AgentRefused(f"no device {spec.place.device} here; there is {', '.join(sorted(self._devices))}")
        return self._devices[spec.place.device]

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

    def _prune_logs(self) -> None:
        logs = sorted(self._paths.logs.joinpath("replicas").glob("*.log"), key=lambda path: path.stat().st_mtime)
        for path in logs[:-KEPT_LOGS]:
            if path.stem not in self._replicas:
                path.unlink(missing_ok=True)

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
