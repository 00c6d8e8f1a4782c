"""What `/gshare/` answers, and `gshare status` reads: functions with their shares and replicas, and devices."""

from __future__ import annotations

import msgspec
from gshare.share import Kind

from gateway_plugin.model import Device, FunctionRecord, FunctionStatus, ReplicaSpec, ReplicaStatus, share_text

ENFORCED = ("space", "time")


class ShareView(msgspec.Struct, frozen=True, kw_only=True):
    """A share as asked for."""

    text: str
    """As people read it; `-` for a plain function."""
    kind: str
    sm_partition: int
    """Percent of a device's SMs (or cores)."""
    quota_request: float
    quota_limit: float
    memory_bytes: int | None
    enforced: tuple[str, ...]
    """What replicas are held to: `space` (unless one says `degraded`) and `time`. Memory is counted when replicas are
    placed; on a GPU it is limited, too."""


class ReplicaView(msgspec.Struct, frozen=True, kw_only=True):
    """One replica as it runs."""

    id: str
    state: str
    reason: str
    degraded: str
    """Why it is not held to its units, though it runs; empty: it is."""
    ungated_device_use: bool
    """It computes on its cores beyond its tokens and what is allowed for requests' handling (CPU devices only)."""
    pid: int
    revision: str
    device: str
    """Empty: none."""
    units: tuple[int, ...]
    """Indices of its units on that device."""
    effective_sm_partition: float | None
    """Percent of the device that its units are; None without a device."""
    weights: str
    weights_digest: str
    memory_bytes: int
    live_version: int
    """Version of the live settings that it was told."""
    acked_version: int
    """Version that it has in force."""
    ack_error: str
    started_at: float


class GshareFunctionView(msgspec.Struct, frozen=True, kw_only=True):
    """One function with its share, and every replica of it."""

    name: str
    """Canonical: NAME.NAMESPACE."""
    image: str
    url_path: str
    created_at: str
    revision: str
    generation: int
    wanted: int
    ready: int
    pending: int
    """Wanted replicas that have no place."""
    reason: str
    """Why replicas are pending or failing."""
    failures: int
    """Failed attempts in a row of the wanted revision."""
    min_replicas: int
    max_replicas: int
    invocations: int
    share: ShareView
    slo_ms: float | None
    max_batch: int
    max_batch_delay_ms: float
    weights: str
    """As asked for; empty: the function's own default."""
    replicas: tuple[ReplicaView, ...]


class DeviceView(msgspec.Struct, frozen=True, kw_only=True):
    """One device, and how much of it is asked for."""

    id: str
    kind: str
    node: str
    units: int
    memory_bytes: int
    cores: tuple[int, ...]
    requested: tuple[float, ...]
    """For each unit, the sum of the quota requests placed on it."""
    requested_memory_bytes: int
    """Sum of the memory that replicas here have asked for; those that state none are not in it."""
    replicas: tuple[str, ...]


def gshare_function_view(
    record: FunctionRecord, status: FunctionStatus, *, invocations: int, devices: list[Device]
) -> GshareFunctionView:
    asked = record.spec.share_request()
    low, high = record.spec.scale_range()
    units = {device.id: device.units for device in devices}
    return GshareFunctionView(
        name=record.name,
        image=record.spec.image,
        url_path=f"/function/{record.spec.service}",
        created_at=record.created_at,
        revision=record.revision,
        generation=record.generation,
        wanted=record.replicas,
        ready=status.ready,
        pending=status.pending,
        reason=status.reason,
        failures=status.failures,
        min_replicas=low,
        max_replicas=high,
        invocations=invocations,
        share=_share_view(record),
        slo_ms=asked.slo_ms,
        max_batch=asked.max_batch,
        max_batch_delay_ms=asked.max_batch_delay_ms,
        weights=record.spec.weights(),
        replicas=tuple(_replica_view(replica, units) for replica in status.replicas),
    )


def device_view(device: Device, replicas: list[ReplicaStatus]) -> DeviceView:
    """`replicas`: of all functions; those of other devices do not count."""
    here = [replica.spec for replica in replicas if replica.spec.place and replica.spec.place.device == device.id]
    return DeviceView(
        id=device.id,
        kind=device.kind,
        node=device.node,
        units=device.units,
        memory_bytes=device.memory_bytes,
        cores=device.cores,
        requested=tuple(_requested(here, unit) for unit in range(device.units)),
        requested_memory_bytes=sum(spec.live.memory_bytes or 0 for spec in here),
        replicas=tuple(sorted(spec.id for spec in here)),
    )


def _requested(specs: list[ReplicaSpec], unit: int) -> float:
    return round(sum(spec.live.quota_request for spec in specs if spec.place and unit in spec.place.units), 6)


def _share_view(record: FunctionRecord) -> ShareView:
    asked = record.spec.share_request()
    return ShareView(
        text=share_text(record.spec),
        kind=asked.kind.value,
        sm_partition=asked.share.sm_partition,
        quota_request=asked.share.quota_request,
        quota_limit=asked.share.quota_limit,
        memory_bytes=asked.share.memory_bytes,
        enforced=() if asked.kind is Kind.PLAIN else ENFORCED,
    )


def _replica_view(replica: ReplicaStatus, device_units: dict[str, int]) -> ReplicaView:
    place = replica.spec.place
    of_device = device_units.get(place.device) if place else None
    return ReplicaView(
        id=replica.spec.id,
        state=replica.state.value,
        reason=replica.reason,
        degraded=replica.degraded,
        ungated_device_use=replica.ungated_device_use,
        pid=replica.pid,
        revision=replica.spec.revision,
        device=place.device if place else "",
        units=place.units if place else (),
        effective_sm_partition=round(100 * len(place.units) / of_device, 2) if place and of_device else None,
        weights=replica.weights,
        weights_digest=replica.weights_digest,
        memory_bytes=replica.memory_bytes,
        live_version=replica.spec.live_version,
        acked_version=replica.acked_version,
        ack_error=replica.ack_error,
        started_at=replica.started_at,
    )
