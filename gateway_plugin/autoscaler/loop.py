"""The loop: sole owner of the tick. Observes, lets the pure rules decide, acts, tells.

It talks to nobody directly but Redis, the backend and the in-flight counters. When Redis or the backend is away it
changes nothing: what runs serves on, and the routing table stays as it was.
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from gateway_plugin.autoscaler.reconcile import reconcile
from gateway_plugin.autoscaler.routes import routes_of
from gateway_plugin.autoscaler.specs import replica_spec
from gateway_plugin.autoscaler.steps import Drain, Failures, Observed, Remove, Start, Steps
from gateway_plugin.backend import Backend
from gateway_plugin.counters import SLOTS, Counters
from gateway_plugin.errors import AgentRefused, AgentUnavailable, LeaseLost, PluginError
from gateway_plugin.model import (
    FunctionRecord,
    FunctionStatus,
    ReplicaState,
    ReplicaStatus,
    RouteTable,
)
from gateway_plugin.paths import REPLICA_ID_LENGTH
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store

log = logging.getLogger(__name__)
LEASE_TTL_S = 3.0
DRAIN_POLL_S = 0.02
"""How often the in-flight numbers are read while a replica drains."""
TROUBLE_LOG_S = 10.0


@dataclass(slots=True)
class _Draining:
    """A replica on its way out: not routed since `version`, stopped once idle or late."""

    slot: int
    version: int
    since: float
    stopped: bool = False


class Loop:
    """State between ticks; everything in it can be lost without harm."""

    def __init__(self, settings: Settings, *, store: Store, backend: Backend, counters: Counters) -> None:
        self._settings, self._store, self._backend, self._counters = settings, store, backend, counters
        self._owner = f"{os.getpid()}-{secrets.token_hex(4)}"
        self._fence: int | None = None
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._draining: dict[str, _Draining] = {}
        self._failures: dict[str, Failures] = {}
        self._routes: RouteTable | None = None
        self._told: dict[str, FunctionStatus] = {}
        self._next_look_s: float | None = None
        self._trouble_logged_at = float("-inf")

    def stop(self) -> None:
        """From a signal handler: end after the current tick."""
        self._stop.set()
        self._wake.set()

    def wake(self) -> None:
        """From any thread: tick now."""
        self._wake.set()

    def run(self, beat: Callable[[], None]) -> None:
        """Tick until stopped; `beat` is called after each."""
        self._backend.watch(self.wake)
        threading.Thread(
            target=self._store.wait_for_change,
            args=(self.wake,),
            kwargs={"stop": self._stop.is_set},
            name="store-changes",
            daemon=True,
        ).start()
        while not self._stop.is_set():
            self._wake.clear()
            self._guarded_tick()
            beat()
            self._wake.wait(self._pause_s())
        if self._fence is not None:
            self._release()

    def _pause_s(self) -> float:
        if any(not one.stopped for one in self._draining.values()):
            return DRAIN_POLL_S
        return min(self._settings.tick_s, self._next_look_s or self._settings.tick_s)

    def _guarded_tick(self) -> None:
        try:
            self.tick()
        except PluginError as error:
            self._trouble(str(error))
        except Exception:  # the loop's edge: one bad tick must not end scaling for every function
            log.exception("tick failed")

    def _trouble(self, text: str) -> None:
        now = time.monotonic()
        if now - self._trouble_logged_at >= TROUBLE_LOG_S:
            self._trouble_logged_at = now
            log.warning("nothing is changed for now: %s", text)

    def tick(self) -> None:
        """One round. Raises: PluginError when Redis or the backend is away; then nothing was half-decided."""
        fence = self._hold_lease()
        if fence is None:
            return
        records = self._woken(self._store.functions())
        replicas = self._backend.replicas()
        devices = self._backend.devices()
        self._store.put_devices(devices)
        self._store.put_ledgers(self._backend.ledgers())
        self._forget_gone(replicas)
        seen = Observed(
            records=records,
            replicas=replicas,
            draining=frozenset(self._draining),
            devices=devices,
            failures=self._failures,
            now=time.time(),
            start_timeout_s=self._settings.start_timeout_s,
            max_inflight=self._settings.max_inflight,
        )
        steps = reconcile(seen)
        self._next_look_s = steps.next_look_s
        self._act(steps, replicas, fence=fence)
        self._publish_routes(records, replicas)
        self._stop_drained(fence)
        self._tell(records, steps)

    # Lease

    def _hold_lease(self) -> int | None:
        if self._fence is not None:
            try:
                self._store.extend_lease(self._owner, ttl_s=LEASE_TTL_S)
            except LeaseLost:
                self._fence = None
        if self._fence is None:
            self._fence = self._store.acquire_lease(self._owner, ttl_s=LEASE_TTL_S)
        return self._fence

    def _release(self) -> None:
        try:
            self._store.release_lease(self._owner)
        except PluginError as error:
            log.info("lease not released, it runs out by itself: %s", error)

    # Observe

    def _woken(self, records: list[FunctionRecord]) -> list[FunctionRecord]:
        """Functions at zero that a request asked for get their least count."""
        asked = self._store.take_wakeups([record.name for record in records if record.replicas == 0])
        if not asked:
            return records
        for name in asked:
            log.info("%s: woken by a request", name)
            self._store.update_function(name, _wake_up)
        return self._store.functions()

    def _forget_gone(self, replicas: tuple[ReplicaStatus, ...]) -> None:
        ids = {status.spec.id for status in replicas}
        self._draining = {key: value for key, value in self._draining.items() if key in ids}
        for status in replicas:
            if status.state is ReplicaState.DRAINING:
                self._draining.setdefault(
                    status.spec.id, _Draining(status.spec.slot, 0, time.monotonic(), stopped=True)
                )
            failures = self._failures.get(status.spec.function)
            if failures is not None and failures.ended_by(status):
                del self._failures[status.spec.function]

    # Act

    def _act(self, steps: Steps, replicas: tuple[ReplicaStatus, ...], *, fence: int) -> None:
        slots = {status.spec.slot for status in replicas}
        for drain in steps.drains:
            self._begin_drain(drain, replicas)
        for remove in steps.removes:
            self._remove(remove, fence=fence)
        for start in steps.starts:
            self._start(start, slots, fence=fence)
        for change in steps.configures:
            self._backend.configure(change.replica_id, change.live, fence=fence, version=change.version)

    def _begin_drain(self, drain: Drain, replicas: tuple[ReplicaStatus, ...]) -> None:
        log.info("%s: draining: %s", drain.replica_id, drain.reason)
        slot = next(status.spec.slot for status in replicas if status.spec.id == drain.replica_id)
        # The version is known once the table without this replica has been published.
        self._draining[drain.replica_id] = _Draining(slot, -1, time.monotonic())

    def _remove(self, remove: Remove, *, fence: int) -> None:
        if remove.replica_id not in self._draining:
            self._count_failure(remove)
        self._backend.stop(remove.replica_id, fence=fence, grace_s=self._settings.drain_timeout_s)

    def _count_failure(self, remove: Remove) -> None:
        before = self._failures.get(remove.function)
        count = before.count + 1 if before is not None and before.revision == remove.revision else 1
        log.warning("%s: failed (%d in a row): %s", remove.replica_id, count, remove.reason)
        self._failures[remove.function] = Failures(
            revision=remove.revision, count=count, last_at=time.time(), reason=remove.reason
        )
        self.wake()

    def _start(self, start: Start, slots: set[int], *, fence: int) -> None:
        slot = next(number for number in range(SLOTS) if number not in slots)
        slots.add(slot)
        name = start.record.spec.service
        replica_id = f"{name[: REPLICA_ID_LENGTH - 9]}-{secrets.token_hex(4)}"
        spec = replica_spec(start, replica_id=replica_id, slot=slot, max_inflight=self._settings.max_inflight)
        log.info("%s: starting on %s", replica_id, start.place or "no device")
        try:
            self._backend.start(spec, fence=fence)
        except AgentRefused as error:
            self._count_failure(Remove(replica_id, start.record.name, start.record.revision, str(error)))

    # Routes and draining

    def _publish_routes(self, records: list[FunctionRecord], replicas: tuple[ReplicaStatus, ...]) -> None:
        functions = routes_of(records, replicas, draining=self._draining)
        if self._routes is None or self._routes.functions != functions:
            self._routes = RouteTable(self._store.next_routes_version(), functions)
            self._store.publish_routes(self._routes)
        for one in self._draining.values():
            if one.version < 0:
                one.version = self._routes.version

    def _stop_drained(self, fence: int) -> None:
        now = time.monotonic()
        applied = self._counters.applied_version()
        for replica_id, one in self._draining.items():
            if one.stopped:
                continue
            idle = applied >= one.version and self._counters.in_flight(one.slot) == 0
            late = now - one.since > self._settings.drain_timeout_s
            if late and not idle:
                log.warning("%s: still busy after %.0f s", replica_id, self._settings.drain_timeout_s)
            if idle or late:
                self._backend.stop(replica_id, fence=fence, grace_s=self._settings.drain_timeout_s)
                one.stopped = True

    # Tell

    def _tell(self, records: list[FunctionRecord], steps: Steps) -> None:
        try:
            replicas = self._backend.replicas()
        except AgentUnavailable:
            return
        statuses = {record.name: self._status(record, replicas, steps) for record in records}
        changed = {name: status for name, status in statuses.items() if self._told.get(name) != status}
        gone = [name for name in self._told if name not in statuses]
        if changed or gone:
            self._store.put_statuses(changed, gone=gone)
        self._told = statuses

    def _status(self, record: FunctionRecord, replicas: tuple[ReplicaStatus, ...], steps: Steps) -> FunctionStatus:
        assert self._routes is not None  # published before
        pending, reason = steps.pending.get(record.name, (0, ""))
        failures = self._failures.get(record.name)
        if failures is not None and failures.revision != record.revision:
            failures = None
        if failures is not None and not reason:
            reason = f"{failures.reason}; attempt {failures.count + 1} runs"
        return FunctionStatus(
            name=record.name,
            ready=len(self._routes.functions[record.name].replicas),
            pending=pending,
            reason=reason,
            failures=failures.count if failures else 0,
            replicas=tuple(status for status in replicas if status.spec.function == record.name),
        )


def _wake_up(record: FunctionRecord | None) -> FunctionRecord | None:
    if record is None or record.replicas > 0:
        return record
    low, _ = record.spec.scale_range()
    return msgspec.structs.replace(record, replicas=low, generation=record.generation + 1)
