"""From what a function's owner wrote to what the node is told. Pure."""

from __future__ import annotations

from gshare.share import ShareRequest
from gshare.wire import LiveConfig

from gateway_plugin.autoscaler.steps import Start
from gateway_plugin.model import ReplicaSpec


def live_config(asked: ShareRequest) -> LiveConfig:
    """The live settings that a function's annotations ask for."""
    share = asked.share
    return LiveConfig(
        quota_request=share.quota_request,
        quota_limit=share.quota_limit,
        memory_bytes=share.memory_bytes,
        slo_ms=asked.slo_ms,
        max_batch=asked.max_batch,
        max_batch_delay_ms=asked.max_batch_delay_ms,
    )


def replica_spec(start: Start, *, replica_id: str, slot: int, max_inflight: int) -> ReplicaSpec:
    """The node's view of a replica to start."""
    record, asked = start.record, start.record.spec.share_request()
    return ReplicaSpec(
        id=replica_id,
        function=record.name,
        revision=record.revision,
        code_digest=record.code_digest,
        slot=slot,
        env=record.spec.env_vars,
        weights=asked.weights or "",
        kind=asked.kind,
        sm_partition=asked.share.sm_partition,
        place=start.place,
        live=live_config(asked),
        max_inflight=max_inflight,
        replaces=start.replaces,
    )
