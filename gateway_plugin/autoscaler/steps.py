"""What a reconciling step depends on and what it can come to. Facts only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gshare.wire import LiveConfig

from gateway_plugin.model import Device, FunctionRecord, Place, ReplicaState, ReplicaStatus

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """How often a function's revision failed in a row, and when last."""

    revision: str
    count: int
    last_at: float
    reason: str

    def pause_s(self) -> float:
        """How long to wait after the last failure before the next attempt; nothing after the first."""
        return 0.0 if self.count <= 1 else min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** (self.count - 2))

    def wait_s(self, now: float) -> float:
        """How much of the pause is left; nothing if the clock was set back, which may otherwise take for ever."""
        return 0.0 if now < self.last_at else max(0.0, self.last_at + self.pause_s() - now)

    def ended_by(self, status: ReplicaStatus) -> bool:
        """Whether this replica shows that the revision works now: others that were ready before show nothing."""
        return (
            status.state is ReplicaState.READY and status.spec.revision == self.revision and status.since > self.last_at
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything a step depends on."""

    records: Sequence[FunctionRecord]
    replicas: Sequence[ReplicaStatus]
    draining: frozenset[str]
    """Ids of replicas that get no new requests and will be stopped once idle."""
    devices: Sequence[Device]
    failures: Mapping[str, Failures]
    now: float
    start_timeout_s: float
    max_inflight: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start one replica of a function; id and slot are given by the loop."""

    record: FunctionRecord
    place: Place | None
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Drain:
    """Take a replica out of the routes, then stop it when idle."""

    replica_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Remove:
    """Stop a replica that serves nothing: dead, failed, or late."""

    replica_id: str
    function: str
    revision: str
    reason: str


@dataclass(frozen=True, slots=True)
class Configure:
    """Give a replica new live settings."""

    replica_id: str
    live: LiveConfig
    version: int


@dataclass(slots=True)
class Steps:
    """What to do, and why what is missing is missing."""

    starts: list[Start] = field(default_factory=list)
    drains: list[Drain] = field(default_factory=list)
    removes: list[Remove] = field(default_factory=list)
    configures: list[Configure] = field(default_factory=list)
    pending: dict[str, tuple[int, str]] = field(default_factory=dict)
    """function → (replicas without a place or in a pause, why)."""
    next_look_s: float | None = None
    """Seconds until a pause ends, if one is running."""
