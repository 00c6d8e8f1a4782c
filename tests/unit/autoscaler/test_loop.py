"""The loop over a real Redis, with a backend that the test plays."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from gshare.wire import LiveConfig

from gateway_plugin.autoscaler.loop import Loop
from gateway_plugin.counters import Counters
from gateway_plugin.errors import AgentRefused, AgentUnavailable, StoreUnavailable
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device, FunctionRecord, FunctionSpec, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.settings import Settings
from gateway_plugin.store import WAKEUP, Store

NAME = "f.openfaas-fn"


class PlayedBackend:
    """Replicas that start, get ready and end when the test says so."""

    def __init__(self) -> None:
        self.running: dict[str, ReplicaStatus] = {}
        self.stopped: list[str] = []
        self.away = False
        self.refuse = ""
        self.fences: set[int] = set()

    def devices(self) -> tuple[Device, ...]:
        self._reach()
        return (Device(id="cpu:0", kind="cpu", units=2, memory_bytes=8 * 1024**3, cores=(0, 1)),)

    def replicas(self) -> tuple[ReplicaStatus, ...]:
        self._reach()
        return tuple(self.running.values())

    def ledgers(self) -> tuple[Ledger, ...]:
        self._reach()
        return (Ledger(device="cpu:0", at_s=1.0, span_s=10.0, entries=(), functions={NAME: 12.5}),)

    def start(self, spec: ReplicaSpec, *, fence: int) -> None:
        self._reach()
        self.fences.add(fence)
        if self.refuse:
            raise AgentRefused(self.refuse)
        now = time.time()
        self.running[spec.id] = ReplicaStatus(spec=spec, state=ReplicaState.STARTING, started_at=now, since=now)

    def stop(self, replica_id: str, *, fence: int, grace_s: float) -> None:
        self._reach()
        self.stopped.append(replica_id)
        self.running.pop(replica_id, None)

    def configure(self, replica_id: str, live: LiveConfig, *, fence: int, version: int) -> None:
        status = self.running[replica_id]
        spec = msgspec.structs.replace(status.spec, live=live, live_version=version)
        self.running[replica_id] = msgspec.structs.replace(status, spec=spec, acked_version=version)

    def watch(self, on_change: Callable[[], None]) -> None:
        """Nobody calls: the test ticks by hand."""

    def become(self, state: ReplicaState, reason: str = "") -> None:
        self.running = {
            key: msgspec.structs.replace(one, state=state, reason=reason, endpoint=f"unix:/{key}")
            for key, one in self.running.items()
        }

    def _reach(self) -> None:
        if self.away:
            raise AgentUnavailable("node agent: away")


class Stage:
    """A loop with everything around it."""

    def __init__(self, redis_url: str, folder: Path) -> None:
        self.settings = Settings.from_env({"GSHARE_HOME": str(folder), "GSHARE_DRAIN_TIMEOUT_S": "60"})
        self.store = Store(redis_url)
        self.backend = PlayedBackend()
        self.counters = Counters(folder / "counters", workers=1)
        self.worker = self.counters.worker(0)
        self.loop = Loop(self.settings, store=self.store, backend=self.backend, counters=self.counters)

    def want(self, replicas: int, revision: str = "r1") -> None:
        record = FunctionRecord(
            spec=FunctionSpec(service="f", image="f"),
            replicas=replicas,
            revision=revision,
            code_digest="d",
            created_at="2026-01-01T00:00:00Z",
        )
        self.store.update_function(NAME, lambda _: record)

    def routed(self) -> list[str]:
        table = self.store.routes()
        assert table is not None
        return [route.replica for route in table.functions[NAME].replicas]

    def worker_applies_routes(self) -> None:
        table = self.store.routes()
        assert table is not None
        self.worker.set_applied_version(table.version)


@pytest.fixture
def stage(redis_url: str, tmp_path: Path) -> Stage:
    return Stage(redis_url, tmp_path)


def serving(stage: Stage, replicas: int = 1) -> None:
    """Bring it to the state where that many replicas serve."""
    stage.want(replicas)
    stage.loop.tick()
    stage.backend.become(ReplicaState.READY)
    stage.loop.tick()
    stage.worker_applies_routes()


def test_a_wanted_function_is_started_routed_when_ready_and_told(stage: Stage) -> None:
    stage.want(2)
    stage.loop.tick()
    assert stage.routed() == []
    assert [one.spec.slot for one in stage.backend.running.values()] == [0, 1]
    stage.backend.become(ReplicaState.READY)
    stage.loop.tick()
    assert stage.routed() == sorted(stage.backend.running)
    status = stage.store.status(NAME)
    assert (status.ready, status.pending, status.failures) == (2, 0, 0)
    assert [device.id for device in stage.store.devices()] == ["cpu:0"]


def test_a_replica_is_stopped_only_when_no_worker_routes_to_it_and_nothing_is_in_flight(stage: Stage) -> None:
    serving(stage)
    (victim,) = stage.backend.running.values()
    stage.worker.add(victim.spec.slot, 1)
    stage.want(0)
    stage.loop.tick()
    assert stage.routed() == []
    assert stage.backend.stopped == [], "a worker still has the older table"
    stage.worker_applies_routes()
    stage.loop.tick()
    assert stage.backend.stopped == [], "a request is in flight"
    stage.worker.add(victim.spec.slot, -1)
    stage.loop.tick()
    assert stage.backend.stopped == [victim.spec.id]


def test_a_replica_that_stays_busy_is_stopped_when_its_time_is_over(stage: Stage) -> None:
    stage.loop = Loop(
        Settings.from_env({"GSHARE_HOME": str(stage.settings.home), "GSHARE_DRAIN_TIMEOUT_S": "0.1"}),
        store=stage.store,
        backend=stage.backend,
        counters=stage.counters,
    )
    serving(stage)
    (victim,) = stage.backend.running.values()
    stage.worker.add(victim.spec.slot, 1)
    stage.want(0)
    while not stage.backend.stopped:
        stage.loop.tick()
    assert stage.backend.stopped == [victim.spec.id]


def test_a_request_wakes_a_function_at_zero_once(stage: Stage, redis_url: str) -> None:
    serving(stage, replicas=0)
    stage.store._redis.set(WAKEUP + NAME, "1")
    stage.loop.tick()
    assert len(stage.backend.running) == 1
    record = stage.store.function(NAME)
    assert record is not None
    assert record.replicas == 1
    assert stage.store.take_wakeups([NAME]) == []


def test_with_the_backend_away_nothing_changes_and_then_all_goes_on(stage: Stage) -> None:
    serving(stage)
    before = stage.routed()
    stage.backend.away = True
    with pytest.raises(AgentUnavailable):
        stage.loop.tick()
    assert stage.routed() == before
    stage.backend.away = False
    stage.loop.tick()
    assert stage.routed() == before
    assert stage.backend.stopped == []


def test_with_redis_away_nothing_is_started_or_stopped(stage: Stage, tmp_path: Path) -> None:
    loop = Loop(
        stage.settings,
        store=Store(f"unix://{tmp_path}/none.sock"),
        backend=stage.backend,
        counters=stage.counters,
    )
    with pytest.raises(StoreUnavailable):
        loop.tick()
    assert stage.backend.fences == set()


def test_a_restarted_loop_adopts_what_runs(stage: Stage) -> None:
    serving(stage, replicas=2)
    before = dict(stage.backend.running)
    stage.store._redis.delete("gshare:lease:loop")
    successor = Loop(stage.settings, store=stage.store, backend=stage.backend, counters=stage.counters)
    successor.tick()
    assert stage.backend.running == before
    assert stage.routed() == sorted(before)
    stage.want(3)
    successor.tick()
    assert max(stage.backend.fences) > min(stage.backend.fences), "each holder of the lease has a higher number"


def test_a_second_loop_changes_nothing_while_the_first_holds_the_lease(stage: Stage) -> None:
    serving(stage)
    stage.want(2)
    second = Loop(stage.settings, store=stage.store, backend=stage.backend, counters=stage.counters)
    second.tick()
    assert len(stage.backend.running) == 1


def test_failures_are_counted_told_and_forgotten_once_one_serves(stage: Stage) -> None:
    stage.want(1)
    stage.loop.tick()
    stage.backend.become(ReplicaState.FAILED, "no such weights")
    stage.loop.tick()
    status = stage.store.status(NAME)
    assert (status.failures, status.pending, status.reason) == (1, 0, "no such weights; attempt 2 runs")
    stage.backend.become(ReplicaState.FAILED, "no such weights")
    stage.loop.tick()
    stage.loop.tick()
    status = stage.store.status(NAME)
    assert (status.failures, status.pending, status.reason) == (2, 1, "no such weights; attempt 3 follows")
    while not stage.backend.running:
        stage.loop.tick()
    stage.backend.become(ReplicaState.READY)
    stage.loop.tick()
    stage.loop.tick()
    status = stage.store.status(NAME)
    assert (status.failures, status.reason, status.ready) == (0, "", 1)


def test_a_start_that_the_agent_refuses_is_a_failure_with_its_reason(stage: Stage) -> None:
    stage.backend.refuse = "no program"
    stage.want(1)
    stage.loop.tick()
    assert "no program" in stage.store.status(NAME).reason


def test_a_removed_function_is_drained_and_its_status_goes(stage: Stage) -> None:
    serving(stage)
    stage.store.update_function(NAME, lambda _: None)
    stage.loop.tick()
    stage.worker_applies_routes()
    stage.loop.tick()
    assert stage.backend.running == {}
    assert stage.store.statuses() == {}


def test_a_replica_that_was_ready_before_does_not_hide_that_another_keeps_failing(stage: Stage) -> None:
    serving(stage)
    (healthy,) = stage.backend.running
    stage.want(2)
    stage.loop.tick()
    for _ in range(2):
        (sick,) = (key for key in stage.backend.running if key != healthy)
        failed = msgspec.structs.replace(stage.backend.running[sick], state=ReplicaState.FAILED, reason="port taken")
        stage.backend.running[sick] = failed
        stage.loop.tick()
    stage.loop.tick()
    status = stage.store.status(NAME)
    assert (status.ready, status.failures, status.reason) == (1, 2, "port taken; attempt 3 follows")
    assert list(stage.backend.running) == [healthy], "the next attempt waits"


def test_a_redis_that_lost_everything_neither_fences_the_loop_out_nor_ages_its_routes(stage: Stage) -> None:
    serving(stage)
    (fence,) = stage.backend.fences
    before = stage.store.routes()
    stage.store._redis.flushall()
    stage.want(2)
    stage.loop.tick()
    stage.want(3)
    stage.loop.tick()
    assert len(stage.backend.running) == 3
    assert max(stage.backend.fences) > fence
    after = stage.store.routes()
    assert before is not None
    assert after is not None
    assert after.version > before.version
