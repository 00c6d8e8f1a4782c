"""`/_/status`: everything one replica knows of itself."""

from __future__ import annotations

import os

import msgspec

import gshare
from gshare.condition import Phase
from gshare.metrics import Counts
from gshare.node import Managed
from gshare.runtime import Runtime
from gshare.service import PlainService
from gshare.wire import PROTOCOL, LiveConfig

NOT_GATED = "not gated: no torch module was called yet"


class DeviceStatus(msgspec.Struct, frozen=True):
    id: str
    kind: str
    threads: int


class ShareStatus(msgspec.Struct, frozen=True):
    """The share that was asked for."""

    sm_partition: int
    quota_request: float
    quota_limit: float
    memory_bytes: int | None


class TurnStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What holds the replica to its time quota, and what it used."""

    gating: str
    """`tokens`, `self-paced` while the scheduler is away, `none` where there is none, or why code is not gated."""
    reason: str
    used_s: float
    """Device time since the process started, as it measured it."""
    waited_s: float
    tokens: int
    longest_block_ms: float


class LimitsStatus(msgspec.Struct, frozen=True):
    """What one replica takes at once, and for how long."""

    inflight: int
    queued: int
    exec_timeout_s: float


class WeightsStatus(msgspec.Struct, frozen=True):
    source: str
    digest: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of `/_/status`."""

    function: str
    replica: str
    revision: str
    pid: int
    runtime: str
    protocol: int
    state: Phase
    reason: str
    device: DeviceStatus | None
    share: ShareStatus
    turn: TurnStatus
    limits: LimitsStatus
    weights: WeightsStatus
    live: LiveConfig
    live_version: int
    managed: Managed
    managed_reason: str
    memory_bytes: int
    warmup_ms: float
    inflight: int
    counts: Counts


def status_of(runtime: Runtime) -> Status:
    """A snapshot."""
    config, known, live, device = runtime.config, runtime.condition, runtime.live, runtime.device
    return Status(
        function=config.function,
        replica=config.replica,
        revision=config.revision,
        pid=os.getpid(),
        runtime=gshare.__version__,
        protocol=PROTOCOL,
        state=known.phase,
        reason=known.reason,
        device=DeviceStatus(device.id, device.kind, device.threads) if device else None,
        share=ShareStatus(config.sm_partition, live.quota_request, live.quota_limit, live.memory_bytes),
        turn=_turn_status(runtime),
        limits=LimitsStatus(config.max_inflight, config.max_queued, config.exec_timeout_s),
        weights=WeightsStatus(known.weights, known.weights_digest),
        live=live,
        live_version=runtime.live_version,
        managed=runtime.managed,
        managed_reason=runtime.managed_reason,
        memory_bytes=known.memory_bytes,
        warmup_ms=known.warmup_ms,
        inflight=runtime.metrics.in_flight.count,
        counts=runtime.metrics.counts,
    )


def _turn_status(runtime: Runtime) -> TurnStatus:
    counts, gate = runtime.turn.counts, runtime.gate
    plain = isinstance(runtime.service, PlainService)
    gated = not (plain and gate is not None and not gate.installed)
    return TurnStatus(
        gating=runtime.turn.gating if gated else NOT_GATED,
        reason=runtime.turn.reason,
        used_s=counts.used_s,
        waited_s=counts.waited_s,
        tokens=counts.tokens,
        longest_block_ms=1000 * counts.longest_block_s,
    )
