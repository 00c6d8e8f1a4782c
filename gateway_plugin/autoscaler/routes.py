"""Which replicas may be sent requests, as the table that every data-plane worker gets. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gateway_plugin.model import FunctionRecord, FunctionRoutes, ReplicaState, ReplicaStatus, Route


def routes_of(
    records: Sequence[FunctionRecord], replicas: Sequence[ReplicaStatus], *, draining: Collection[str]
) -> dict[str, FunctionRoutes]:
    """Every known function, with its replicas that are ready and not draining, in order of their ids."""
    ready = [
        status
        for status in sorted(replicas, key=lambda status: status.spec.id)
        if status.state is ReplicaState.READY and status.spec.id not in draining
    ]
    return {
        record.name: FunctionRoutes(
            replicas=tuple(_route(status) for status in ready if status.spec.function == record.name),
            wanted=record.replicas,
        )
        for record in records
    }


def _route(status: ReplicaStatus) -> Route:
    return Route(status.spec.id, status.spec.slot, status.endpoint, status.spec.max_inflight)
