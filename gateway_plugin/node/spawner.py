"""Starts a replica's process and writes down what the next agent has to know of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway_plugin.errors import AgentRefused
from gateway_plugin.model import Device, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.node.launch import Launch, launch_of
from gateway_plugin.node.replica import ReplicaRecord, save_record
from gateway_plugin.node.spatial import SpaceOwner
from gateway_plugin.paths import Paths
from gateway_plugin.processes import ProcessId, identify, set_niceness, spawn
from gateway_plugin.snapshots import HANDLER, PACKAGE

REPLICA_NICENESS = 10
"""Below gateway and agent, so that they stay quick on a busy CPU device."""
KEPT_LOGS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Spawner:
    """What every start on this node has in common."""

    paths: Paths
    devices: Mapping[str, Device]
    weights_root: Path
    exec_timeout_s: float

    def spawn(
        self, spec: ReplicaSpec, folder: Path, *, space: SpaceOwner
    ) -> tuple[subprocess.Popen[bytes], ReplicaRecord]:
        """A running replica, held to its space, with its record in `folder`.

        Raises:
            AgentRefused: no such device, or the function's code is gone.
            OSError: it cannot be started, held to its space or written down; then nothing is left running.
        """
        credential = secrets.token_hex(16)
        launch = self._launch(spec, space, credential=credential)
        popen = spawn(launch.argv, env=launch.env, log=self.paths.replica_log(spec.id), cwd=launch.cwd)
        with contextlib.suppress(ProcessLookupError):
            set_niceness(popen.pid, REPLICA_NICENESS)
        process = identify(popen.pid)
        assert process is not None  # our child, not yet waited for
        status = self._first_status(spec, process, degraded=space.degraded)
        record = ReplicaRecord(status=status, credential=credential, process=process)
        try:
            space.admit(spec, popen.pid, degraded=status.degraded)
            save_record(record, folder)
        except OSError:  # it would run where it must not, or nobody would know of it
            process.send_to_session(signal.SIGKILL)
            popen.wait()
            raise
        return popen, record

    def prune_logs(self, *, known: Collection[str]) -> None:
        """Remove the oldest logs of replicas that are not `known` any more."""
        logs = sorted(self.paths.logs.joinpath("replicas").glob("*.log"), key=lambda path: path.stat().st_mtime)
        for path in logs[:-KEPT_LOGS]:
            if path.stem not in known:
                path.unlink(missing_ok=True)

    def _launch(self, spec: ReplicaSpec, space: SpaceOwner, *, credential: str) -> Launch:
        self._require_code(spec)
        return launch_of(
            spec,
            paths=self.paths,
            device=self._device(spec),
            device_env=space.environment(spec),
            credential=credential,
            weights_root=self.weights_root,
            exec_timeout_s=self.exec_timeout_s,
            base_env=os.environ,
        )

    def _first_status(self, spec: ReplicaSpec, process: ProcessId, *, degraded: str) -> ReplicaStatus:
        now = time.time()
        return ReplicaStatus(
            spec=spec,
            state=ReplicaState.STARTING,
            reason="starting",
            degraded=degraded,
            pid=process.pid,
            endpoint=f"unix:{self.paths.replica_http(spec.id)}",
            started_at=now,
            since=now,
        )

    def _require_code(self, spec: ReplicaSpec) -> None:
        """Without its snapshot a replica would find the template's starter in its place, and serve that."""
        handler = self.paths.code / spec.code_digest / PACKAGE / HANDLER
        if not handler.is_file():
            raise AgentRefused(f"its code is gone: no {handler}; deploy the function again")

    def _device(self, spec: ReplicaSpec) -> Device | None:
        if spec.place is None:
            return None
        if spec.place.device not in self.devices:
            raise AgentRefused(f"no device {spec.place.device} here; there is {', '.join(sorted(self.devices))}")
        return self.devices[spec.place.device]
