"""From wanted and running to the next steps."""

from __future__ import annotations

from typing import Any

import msgspec
from gshare.share import Kind
from gshare.wire import LiveConfig

from gateway_plugin.autoscaler.reconcile import reconcile
from gateway_plugin.autoscaler.specs import live_config
from gateway_plugin.autoscaler.steps import Failures, Observed, Steps
from gateway_plugin.model import Device, FunctionRecord, FunctionSpec, Place, ReplicaSpec, ReplicaState, ReplicaStatus

GIB = 1024**3
NAME = "f.openfaas-fn"
NOW = 1000.0
PINNED = {"fastgshare/gpu_sm_partition": "24", "fastgshare/gpu_quota_request": "0.3", "fastgshare/gpu_mem": "1Gi"}
CPU = Device(id="cpu:0", kind="cpu", units=2, memory_bytes=8 * GIB, cores=(0, 1))


def record(replicas: int = 1, revision: str = "r1", annotations: dict[str, str] | None = None) -> FunctionRecord:
    return FunctionRecord(
        spec=FunctionSpec(service="f", image="f", annotations=PINNED if annotations is None else annotations),
        replicas=replicas,
        revision=revision,
        code_digest="d",
        created_at="2026-01-01T00:00:00Z",
    )


def replica(
    key: str, *, revision: str = "r1", state: ReplicaState = ReplicaState.READY, started_at: float = 0.0, **spec: Any
) -> ReplicaStatus:
    fields: dict[str, Any] = {
        "kind": Kind.PINNED,
        "sm_partition": 24,
        "place": Place("cpu:0", (0,)),
        "live": live_config(record().spec.share_request()),
    }
    made = ReplicaSpec(id=key, function=NAME, revision=revision, code_digest="d", slot=0, **(fields | spec))
    return ReplicaStatus(spec=made, state=state, started_at=started_at, since=started_at)


def steps(*replicas: ReplicaStatus, wanted: FunctionRecord | None = None, **changes: Any) -> Steps:
    seen = Observed(
        records=[wanted or record()],
        replicas=replicas,
        draining=frozenset(),
        devices=[CPU],
        failures={},
        now=NOW,
        start_timeout_s=2000.0,
        max_inflight=16,
    )
    fields = {name: getattr(seen, name) for name in Observed.__slots__} | changes
    return reconcile(Observed(**fields))


def test_a_new_function_gets_its_replicas_placed() -> None:
    made = steps(wanted=record(replicas=3))
    assert [start.place for start in made.starts] == [Place("cpu:0", (0,))] * 3


def test_what_runs_as_wanted_is_left_alone() -> None:
    made = steps(replica("a"))
    assert made == Steps()


def test_what_has_no_room_is_pending_with_its_reason_and_the_rest_starts() -> None:
    made = steps(wanted=record(replicas=8))
    assert len(made.starts) == 6
    assert made.pending[NAME][0] == 2
    assert "needs 0.30 of the time" in made.pending[NAME][1]


def test_a_plain_function_needs_no_device() -> None:
    made = steps(wanted=record(annotations={}), devices=[])
    assert [start.place for start in made.starts] == [None]


def test_a_new_revision_borrows_its_predecessors_place_one_at_a_time() -> None:
    old = [replica("a", started_at=1), replica("b", started_at=2, place=Place("cpu:0", (1,)))]
    made = steps(*old, wanted=record(replicas=2, revision="r2"))
    assert [(start.replaces, start.place) for start in made.starts] == [("a", Place("cpu:0", (0,)))]
    assert made.drains == []


def test_while_the_successor_loads_nothing_else_moves() -> None:
    loading = replica("c", revision="r2", state=ReplicaState.STARTING, replaces="a")
    made = steps(replica("a"), replica("b"), loading, wanted=record(replicas=2, revision="r2"))
    assert made == Steps()


def test_when_the_successor_is_ready_its_very_predecessor_drains_and_the_next_is_replaced() -> None:
    ready = replica("c", revision="r2", replaces="a")
    made = steps(replica("a", started_at=1), replica("b", started_at=2), ready, wanted=record(2, "r2"))
    assert [drain.replica_id for drain in made.drains] == ["a"]
    assert [start.replaces for start in made.starts] == ["b"]


def test_a_borrowed_place_counts_once_for_its_neighbours() -> None:
    old, successor = replica("a"), replica("c", revision="r2", replaces="a", state=ReplicaState.STARTING)
    other = msgspec.structs.replace(record(replicas=2), spec=FunctionSpec(service="g", image="g", annotations=PINNED))
    seen = Observed(
        records=[record(revision="r2"), other],
        replicas=[old, successor],
        draining=frozenset(),
        devices=[Device(id="cpu:0", kind="cpu", units=1, memory_bytes=8 * GIB, cores=(0,))],
        failures={},
        now=NOW,
        start_timeout_s=2000.0,
        max_inflight=16,
    )
    assert len(reconcile(seen).starts) == 2


def test_another_partition_is_placed_beside_the_old_one() -> None:
    wider = record(revision="r2", annotations=PINNED | {"fastgshare/gpu_sm_partition": "60"})
    made = steps(replica("a"), wanted=wider)
    assert [(start.replaces, start.place) for start in made.starts] == [("", Place("cpu:0", (0, 1)))]
    assert made.drains == []


def test_another_partition_without_room_beside_the_old_one_drains_that_first() -> None:
    wider = record(
        revision="r2", annotations={"fastgshare/gpu_sm_partition": "60", "fastgshare/gpu_quota_request": "0.8"}
    )
    made = steps(replica("a"), wanted=wider)
    assert made.starts == []
    assert [drain.replica_id for drain in made.drains] == ["a"]
    assert NAME in made.pending


def test_a_share_that_never_fits_leaves_the_old_revision_serving() -> None:
    too_large = record(revision="r2", annotations=PINNED | {"fastgshare/gpu_mem": "100Gi"})
    made = steps(replica("a", sm_partition=30), wanted=too_large)
    assert made.drains == []
    assert NAME in made.pending


def test_a_failing_new_revision_leaves_the_old_one_serving() -> None:
    failed = replica("c", revision="r2", state=ReplicaState.FAILED)
    made = steps(replica("a"), failed, wanted=record(revision="r2"))
    assert [remove.replica_id for remove in made.removes] == ["c"]
    assert made.drains == []


def test_a_first_failure_is_replaced_at_once() -> None:
    made = steps(replica("a", state=ReplicaState.FAILED))
    assert [remove.replica_id for remove in made.removes] == ["a"]
    assert len(made.starts) == 1
    assert Failures(revision="r1", count=1, last_at=NOW, reason="").pause_s() == 0


def test_a_further_failure_is_counted_before_anything_starts() -> None:
    failures = Failures(revision="r1", count=1, last_at=NOW - 9, reason="no weights")
    made = steps(replica("a", state=ReplicaState.FAILED), failures={NAME: failures})
    assert [remove.replica_id for remove in made.removes] == ["a"]
    assert made.starts == []


def test_after_further_failures_the_next_attempt_waits_twice_as_long_each_time() -> None:
    failures = Failures(revision="r1", count=4, last_at=NOW - 1.5, reason="no weights")
    made = steps(failures={NAME: failures})
    assert failures.pause_s() == 2.0
    assert made.starts == []
    assert made.next_look_s == 0.5
    assert made.pending[NAME] == (1, "no weights; attempt 5 follows")
    assert len(steps(failures={NAME: failures}, now=NOW + 0.5).starts) == 1


def test_a_clock_that_was_set_back_prolongs_no_pause() -> None:
    failures = Failures(revision="r1", count=4, last_at=NOW + 3600, reason="no weights")
    assert failures.wait_s(NOW) == 0.0
    assert failures.wait_s(failures.last_at + 0.5) == 1.5


def test_failures_of_another_revision_do_not_hold_back_a_new_one() -> None:
    failures = Failures(revision="r0", count=9, last_at=NOW, reason="broken")
    assert len(steps(failures={NAME: failures}).starts) == 1


def test_a_replica_that_takes_too_long_is_removed_and_says_which_setting() -> None:
    slow = replica("a", state=ReplicaState.STARTING, started_at=NOW - 11)
    made = steps(slow, start_timeout_s=10.0)
    assert [remove.reason for remove in made.removes] == ["not ready within 10 s (GSHARE_START_TIMEOUT_S)"]


def test_fewer_wanted_gives_up_those_loading_then_the_youngest() -> None:
    made = steps(
        replica("old", started_at=1),
        replica("young", started_at=2),
        replica("loading", state=ReplicaState.STARTING, started_at=0),
        wanted=record(replicas=1),
    )
    assert [drain.replica_id for drain in made.drains] == ["loading", "young"]


def test_zero_wanted_drains_all_and_a_draining_one_is_not_drained_twice() -> None:
    made = steps(replica("a"), replica("b"), wanted=record(replicas=0), draining=frozenset({"a"}))
    assert [drain.replica_id for drain in made.drains] == ["b"]


def test_replicas_of_a_removed_function_drain() -> None:
    made = steps(replica("a"), records=[])
    assert [drain.reason for drain in made.drains] == ["the function was removed"]


def test_changed_live_settings_are_sent_once_with_the_next_version() -> None:
    slower = record(annotations=PINNED | {"fastgshare/slo_ms": "99"})
    made = steps(replica("a", live_version=4), wanted=slower)
    assert [(one.replica_id, one.version, one.live.slo_ms) for one in made.configures] == [("a", 5, 99.0)]
    assert made.starts == []
    done = replica("a", live=LiveConfig(0.3, 1.0, GIB, 99.0, 1, 0.0))
    assert steps(done, wanted=slower).configures == []


def test_a_guarantee_is_raised_live_where_it_fits_beside_its_neighbours() -> None:
    more = record(annotations=PINNED | {"fastgshare/gpu_quota_request": "0.6"})

    made = steps(replica("a"), wanted=more)

    assert [one.live.quota_request for one in made.configures] == [0.6]
    assert made.pending == {}


def test_a_guarantee_that_does_not_fit_is_withheld_with_the_reason_and_the_rest_changes() -> None:
    more = record(2, annotations=PINNED | {"fastgshare/gpu_quota_request": "0.6", "fastgshare/slo_ms": "99"})

    made = steps(replica("a"), replica("b"), wanted=more)

    assert [(one.live.quota_request, one.live.slo_ms) for one in made.configures] == [(0.6, 99.0), (0.3, 99.0)]
    count, reason = made.pending[NAME]
    assert count == 0
    assert reason == (
        "quota_request 0.60: needs 0.30 more of the time, 0.10 is free on unit 0 of cpu:0; "
        "it stays 0.30 until there is room"
    )


def test_a_withheld_guarantee_is_not_asked_for_again_until_there_is_room() -> None:
    more = record(2, annotations=PINNED | {"fastgshare/gpu_quota_request": "0.6"})
    raised = LiveConfig(0.6, 1.0, GIB, None, 1, 0.0)

    held = steps(replica("a", live=raised), replica("b"), wanted=more)
    freed = steps(replica("a", live=raised, place=Place("cpu:0", (1,))), replica("b"), wanted=more)

    assert held.configures == []
    assert "it stays 0.30" in held.pending[NAME][1]
    assert [(one.replica_id, one.live.quota_request) for one in freed.configures] == [("b", 0.6)]


def test_lowering_a_guarantee_always_fits() -> None:
    less = record(2, annotations=PINNED | {"fastgshare/gpu_quota_request": "0.1"})

    made = steps(replica("a"), replica("b"), wanted=less)

    assert [one.live.quota_request for one in made.configures] == [0.1, 0.1]


def test_equal_inputs_give_equal_steps() -> None:
    replicas = [replica("b"), replica("a"), replica("c", revision="r0")]
    assert steps(*replicas, wanted=record(2)) == steps(*replicas, wanted=record(2))
