"""From what is wanted and what runs to what to do next. Pure: equal inputs give equal steps.

Rules, in this order, for each function (by name):

1. A replica whose process died, whose load failed or that took too long to start is removed. The first time it is
   replaced at once; each further failure in a row of the same revision doubles a pause.
2. While fewer replicas of the wanted revision exist than are wanted, more are started: in the place of a replica of an
   older revision where there is one (which it borrows until that one is drained), else where placement finds room.
   Replacements go one at a time. What has no place is pending, with the reason; if only the older revision stands in
   its way, that one is drained first and requests wait.
3. A replica of an older revision is drained when its successor is ready, or when nothing needs it.
4. Of too many replicas, those still starting go first, then the youngest.
5. A replica whose live settings differ from the wanted ones is configured; a guarantee that does not fit beside its
   neighbours' is withheld until it does, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gshare.share import Kind

from gateway_plugin.autoscaler.live import grantable
from gateway_plugin.autoscaler.specs import live_config
from gateway_plugin.autoscaler.steps import Configure, Drain, Observed, Remove, Start, Steps
from gateway_plugin.model import FunctionRecord, Place, ReplicaState, ReplicaStatus
from gateway_plugin.placement.first_fit import DEFAULT_MEMORY_BYTES, NoPlace, Occupant, place


def reconcile(seen: Observed) -> Steps:
    """The next steps."""
    steps = Steps()
    wanted = {record.name: record for record in seen.records}
    occupants = _occupants(seen.replicas)
    for status in seen.replicas:
        if status.spec.function not in wanted:
            _retire(status, seen, steps, "the function was removed")
    for name in sorted(wanted):
        mine = [status for status in seen.replicas if status.spec.function == name]
        _function(wanted[name], mine, seen=seen, steps=steps, occupants=occupants)
    return steps


def _function(
    record: FunctionRecord,
    mine: list[ReplicaStatus],
    *,
    seen: Observed,
    steps: Steps,
    occupants: list[Occupant],
) -> None:
    broken = [status for status in mine if _remove_if_broken(status, seen, steps)]
    living = [status for status in mine if status not in broken]
    active = [status for status in living if status.spec.id not in seen.draining]
    fresh = [status for status in active if status.spec.revision == record.revision]
    stale = [status for status in active if status.spec.revision != record.revision]
    if _failed_again(record, broken, seen):
        # How long to wait is known once this failure has been counted: at the next tick, which comes at once.
        steps.pending[record.name] = (record.replicas - len(fresh), broken[0].reason)
    elif len(fresh) < record.replicas:
        _grow(record, fresh, stale, seen=seen, steps=steps, occupants=occupants)
    _retire_stale(record, fresh, stale, seen=seen, steps=steps)
    for status in _surplus(fresh, len(fresh) - record.replicas):
        _retire(status, seen, steps, f"{record.replicas} replicas are wanted")
    _configure(record, fresh, steps=steps, occupants=occupants)


def _configure(record: FunctionRecord, fresh: list[ReplicaStatus], *, steps: Steps, occupants: list[Occupant]) -> None:
    wanted = live_config(record.spec.share_request())
    successors = {status.spec.replaces for status in fresh}
    for status in fresh:
        live, withheld = grantable(wanted, status, occupants, successors=successors)
        if status.spec.live != live:
            steps.configures.append(Configure(status.spec.id, live, status.spec.live_version + 1))
        if withheld:
            steps.pending.setdefault(record.name, (0, withheld))


def _failed_again(record: FunctionRecord, broken: list[ReplicaStatus], seen: Observed) -> bool:
    failures = seen.failures.get(record.name)
    counted = failures is not None and failures.revision == record.revision
    return counted and any(
        status.spec.revision == record.revision and status.spec.id not in seen.draining for status in broken
    )


def _remove_if_broken(status: ReplicaStatus, seen: Observed, steps: Steps) -> bool:
    late = status.state is ReplicaState.STARTING and seen.now - status.since > seen.start_timeout_s
    if status.state is not ReplicaState.FAILED and not late:
        return False
    reason = f"not ready within {seen.start_timeout_s:g} s (GSHARE_START_TIMEOUT_S)" if late else status.reason
    steps.removes.append(Remove(status.spec.id, status.spec.function, status.spec.revision, reason))
    return True


def _grow(
    record: FunctionRecord,
    fresh: list[ReplicaStatus],
    stale: list[ReplicaStatus],
    *,
    seen: Observed,
    steps: Steps,
    occupants: list[Occupant],
) -> None:
    missing = record.replicas - len(fresh)
    failures = seen.failures.get(record.name)
    if failures is not None and failures.revision == record.revision:
        wait_s = failures.wait_s(seen.now)
        if wait_s > 0:
            steps.pending[record.name] = (missing, f"{failures.reason}; attempt {failures.count + 1} follows")
            steps.next_look_s = min(wait_s, steps.next_look_s or wait_s)
            return
    if not stale:
        _start_missing(record, missing, seen=seen, steps=steps, occupants=occupants)
    elif all(status.state is ReplicaState.READY for status in fresh):
        _replace_one(record, fresh, stale, seen=seen, steps=steps, occupants=occupants)


def _replace_one(
    record: FunctionRecord,
    fresh: list[ReplicaStatus],
    stale: list[ReplicaStatus],
    *,
    seen: Observed,
    steps: Steps,
    occupants: list[Occupant],
) -> None:
    """Start one successor: in its predecessor's place, beside it, or, where neither fits, after it."""
    already_lent = {status.spec.replaces for status in fresh}
    lenders = [status for status in stale if status.spec.id not in already_lent]
    old = _oldest(lenders) if lenders else None
    if old is not None and _can_borrow(record, old):
        steps.starts.append(Start(record, old.spec.place, replaces=old.spec.id))
        return
    _start_missing(record, 1, seen=seen, steps=steps, occupants=occupants)
    others = _occupants([status for status in seen.replicas if status not in stale])
    share = record.spec.share_request().share
    if record.name in steps.pending and isinstance(place(share, devices=seen.devices, occupants=others), Place):
        _retire(_oldest(stale), seen, steps, "there is no room for its successor beside it")


def _start_missing(
    record: FunctionRecord, missing: int, *, seen: Observed, steps: Steps, occupants: list[Occupant]
) -> None:
    asked = record.spec.share_request()
    for number in range(missing):
        if asked.kind is Kind.PLAIN:
            steps.starts.append(Start(record, None))
            continue
        found = place(asked.share, devices=seen.devices, occupants=occupants)
        if isinstance(found, NoPlace):
            steps.pending[record.name] = (missing - number, found.reason)
            return
        memory_bytes = asked.share.memory_bytes or DEFAULT_MEMORY_BYTES
        occupants.append(Occupant(found, asked.share.quota_request, memory_bytes))
        steps.starts.append(Start(record, found))


def _can_borrow(record: FunctionRecord, old: ReplicaStatus) -> bool:
    """Whether the new replica is of the same partition of a device as its predecessor, or both are plain."""
    asked = record.spec.share_request()
    if asked.kind is Kind.PLAIN or old.spec.place is None:
        return asked.kind is Kind.PLAIN and old.spec.place is None
    return old.spec.sm_partition == asked.share.sm_partition


def _retire_stale(
    record: FunctionRecord,
    fresh: list[ReplicaStatus],
    stale: list[ReplicaStatus],
    *,
    seen: Observed,
    steps: Steps,
) -> None:
    ready = [status for status in fresh if status.state is ReplicaState.READY]
    keep = max(0, record.replicas - len(ready))
    succeeded = {status.spec.replaces for status in ready}
    for status in _surplus(stale, len(stale) - keep, first=succeeded):
        _retire(status, seen, steps, f"revision {status.spec.revision[:8]} was replaced by {record.revision[:8]}")


def _surplus(replicas: list[ReplicaStatus], count: int, *, first: Collection[str] = frozenset()) -> list[ReplicaStatus]:
    """The `count` replicas to give up: those named first, then those not ready, then the youngest."""
    order = sorted(
        replicas,
        key=lambda status: (
            status.spec.id not in first,
            status.state is ReplicaState.READY,
            -status.started_at,
            status.spec.id,
        ),
    )
    return order[: max(0, count)]


def _oldest(replicas: list[ReplicaStatus]) -> ReplicaStatus:
    return min(replicas, key=lambda status: (status.started_at, status.spec.id))


def _retire(status: ReplicaStatus, seen: Observed, steps: Steps, reason: str) -> None:
    if status.spec.id not in seen.draining:
        steps.drains.append(Drain(status.spec.id, reason))


def _occupants(replicas: Sequence[ReplicaStatus]) -> list[Occupant]:
    """Who holds what. A replica and its successor in the same place count once in time, twice in memory."""
    replaced = {status.spec.replaces for status in replicas}
    return [
        Occupant(
            status.spec.place,
            0.0 if status.spec.id in replaced else status.spec.live.quota_request,
            status.spec.live.memory_bytes or DEFAULT_MEMORY_BYTES,
        )
        for status in replicas
        if status.spec.place is not None
    ]
