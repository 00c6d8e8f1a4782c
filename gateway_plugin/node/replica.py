"""One replica as the agent sees it: its process, its connection, its status, and the record that outlives the agent."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from gshare.wire import Ack, LiveConfig, State

from gateway_plugin.model import ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.processes import ProcessId

log = logging.getLogger(__name__)
RECORD = "record.json"
_STATES = {
    "loading": ReplicaState.STARTING,
    "ready": ReplicaState.READY,
    "failed": ReplicaState.FAILED,
    "draining": ReplicaState.DRAINING,
}


class ReplicaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent keeps on disk of a replica, so that its successor knows it again."""

    status: ReplicaStatus
    credential: str
    process: ProcessId


def save_record(record: ReplicaRecord, folder: Path) -> None:
    """Write the record, atomically; only this user may read it."""
    fresh = folder / (RECORD + ".new")
    fresh.write_bytes(msgspec.json.encode(record))
    fresh.chmod(0o600)
    fresh.rename(folder / RECORD)


class Replica:
    """Status and record of one replica; every change is written down and told to `on_change`."""

    def __init__(self, record: ReplicaRecord, *, folder: Path, on_change: Callable[[ReplicaStatus], None]) -> None:
        self.status = record.status
        self.process = record.process
        self._credential = record.credential
        self._folder = folder
        self._on_change = on_change

    @classmethod
    def load(cls, folder: Path, *, on_change: Callable[[ReplicaStatus], None]) -> Replica | None:
        """The replica an earlier agent left in `folder`; None if its record cannot be read."""
        try:
            record = msgspec.json.decode((folder / RECORD).read_bytes(), type=ReplicaRecord)
        except (OSError, msgspec.MsgspecError):
            return None
        return cls(record, folder=folder, on_change=on_change)

    @property
    def id(self) -> str:
        return self.status.spec.id

    @property
    def credential(self) -> str:
        """The secret it was started with."""
        return self._credential

    @property
    def spec(self) -> ReplicaSpec:
        return self.status.spec

    def knows(self, credential: str) -> bool:
        """Whether this is the secret the replica was started with."""
        return hmac.compare_digest(credential.encode(), self._credential.encode())

    def save(self) -> None:
        """Write the record down."""
        save_record(ReplicaRecord(status=self.status, credential=self._credential, process=self.process), self._folder)

    def reported(self, state: State) -> None:
        """The runtime told its state. One that is to stop stays draining whatever it says."""
        known = _STATES.get(state.state)
        if known is None or self.status.state is ReplicaState.DRAINING:
            return
        self._change(
            state=known,
            reason=state.reason,
            weights=state.weights,
            weights_digest=state.weights_digest,
            memory_bytes=state.memory_bytes,
            warmup_ms=state.warmup_ms,
        )

    def acknowledged(self, ack: Ack) -> None:
        self._change(acked_version=ack.version, ack_error=ack.error)

    def welcomed(self) -> None:
        """It connected and got its settings with the welcome."""
        self._change(acked_version=self.spec.live_version, ack_error="")

    def disconnected(self) -> None:
        """Its serving process is gone while its parent lives: a new one is being loaded."""
        if self.status.state is ReplicaState.READY:
            self._change(state=ReplicaState.STARTING, reason="its serving process ended; a new one is loading")

    def configure(self, live: LiveConfig, version: int) -> None:
        """Settings it has to get: now, or with the welcome when it connects."""
        spec = msgspec.structs.replace(self.spec, live=live, live_version=version)
        self._change(spec=spec)

    def drain(self, reason: str) -> None:
        self._change(state=ReplicaState.DRAINING, reason=reason)

    def judged(self, *, ungated: bool) -> None:
        """Whether it uses its device without tokens was looked at."""
        self._change(ungated_device_use=ungated)

    def ended(self, exit_code: int | None) -> None:
        """Its process is gone."""
        how = "ended" if exit_code is None else f"ended with {'signal' if exit_code < 0 else 'code'} {abs(exit_code)}"
        self._change(state=ReplicaState.FAILED, reason=f"its process {how}", pid=0, exit_code=exit_code)

    def _change(self, **fields: object) -> None:
        if fields.get("state", self.status.state) is not self.status.state:
            fields["since"] = time.time()
        fresh = msgspec.structs.replace(self.status, **fields)
        if fresh != self.status:
            self.status = fresh
            try:
                self.save()
            except OSError as error:  # no room, or the folder was removed: it serves and stops all the same
                log.warning("%s: not written down, so the next agent will not know: %s", self.id, error)
            self._on_change(fresh)
