"""Which changes need new replicas, which do not, and what becomes of the wanted count."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway_plugin.errors import BadRequest, Conflict
from gateway_plugin.model import FunctionRecord, FunctionSpec
from gateway_plugin.openfaas.records import created, scaled, updated

SHARE = {"fastgshare/gpu_sm_partition": "24", "fastgshare/gpu_mem": "2Gi"}
GIB = 1024**3


def spec(**changes: Any) -> FunctionSpec:
    return FunctionSpec(**{"service": "echo", "image": "gshare/echo:1", "annotations": SHARE, **changes})


def record(**changes: Any) -> FunctionRecord:
    return created(spec(**changes), code_digest="code", created_at="2026-01-01T00:00:00Z")


def change(before: FunctionRecord, *, code: str = "code", used_bytes: int = 0, **changes: Any) -> FunctionRecord:
    return updated(before, spec(**changes), code_digest=code, used_memory_bytes=used_bytes)


def with_memory(before: FunctionRecord, memory: str | None, *, used_bytes: int = 0) -> FunctionRecord:
    annotations = {"fastgshare/gpu_sm_partition": "24"} | ({"fastgshare/gpu_mem": memory} if memory else {})
    return change(before, annotations=annotations, used_bytes=used_bytes)


def test_an_update_that_changes_nothing_gives_the_very_same_record() -> None:
    assert change(record()) == record()


@pytest.mark.parametrize(
    "live",
    [
        {"image": "gshare/echo:2"},
        {"labels": {"owner": "me"}},
        {"annotations": {**SHARE, "fastgshare/gpu_quota_request": "0.2"}},
        {"annotations": {**SHARE, "fastgshare/gpu_quota_limit": "0.5"}},
        {"annotations": {**SHARE, "fastgshare/slo_ms": "50"}},
        {"annotations": {**SHARE, "fastgshare/max_batch": "8"}},
        {"annotations": {**SHARE, "fastgshare/max_batch_delay_ms": "5"}},
        {"annotations": {**SHARE, "fastgshare/gpu_mem": "3Gi"}},
        {"annotations": {**SHARE, "topic": "images"}},
    ],
)
def test_a_live_field_keeps_the_revision_and_counts_a_generation(live: dict[str, Any]) -> None:
    after = change(record(), **live)
    assert after.revision == record().revision
    assert after.generation == 2


@pytest.mark.parametrize(
    "rolling",
    [
        {"code": "other"},
        {"env_vars": {"A": "1"}},
        {"env_process": "python other.py"},
        {"constraints": ["zone=b"]},
        {"read_only_root_filesystem": True},
        {"annotations": {**SHARE, "fastgshare/gpu_sm_partition": "25"}},
        {"annotations": {**SHARE, "fastgshare/weights": "random:1"}},
        {"env_vars": {"MODEL_WEIGHTS": "random:1"}},
        {"annotations": {**SHARE, "fastgshare/gpu_mem": "1Gi"}},
    ],
)
def test_a_rolling_field_makes_another_revision(rolling: dict[str, Any]) -> None:
    after = change(record(), **rolling)
    assert after.revision != record().revision
    assert after.generation == 2


def test_a_function_that_gets_a_device_or_loses_it_rolls() -> None:
    plain = record(annotations={})
    assert change(plain, annotations={"fastgshare/slo_ms": "50"}).revision != plain.revision


def test_the_revision_goes_by_meaning_not_by_spelling() -> None:
    env = {"A": "1", "B": "2"}
    before = record(env_vars=env, annotations={**SHARE, "fastgshare/weights": "random:1"})
    respelled = {"fastgshare/gpu_sm_partition": "24.0", "fastgshare/gpu_mem": "2048Mi"}
    after = change(before, env_vars={"B": "2", "A": "1", "MODEL_WEIGHTS": "random:1"}, annotations=respelled)
    assert after.revision == before.revision


def test_memory_that_grows_and_shrinks_back_rolls_since_replicas_hold_the_larger_one() -> None:
    first = record()
    grown = with_memory(first, "3Gi")
    back = with_memory(grown, "2Gi")
    assert grown.revision == first.revision
    assert back.revision != first.revision
    assert with_memory(with_memory(back, "3Gi"), "2Gi").revision not in (first.revision, back.revision)


def test_no_memory_limit_counts_as_more_than_any() -> None:
    first = record()
    unlimited = with_memory(first, None)
    assert unlimited.revision == first.revision
    assert with_memory(unlimited, "8Gi").revision != first.revision


def test_memory_below_what_a_replica_uses_is_a_conflict_that_says_how_much_it_uses() -> None:
    with pytest.raises(Conflict) as caught:
        with_memory(record(), "1Gi", used_bytes=GIB + 1)
    assert "fastgshare/gpu_mem: '1Gi'" in str(caught.value)
    assert f"{GIB + 1} bytes" in str(caught.value)
    assert "at least 1025Mi" in str(caught.value)
    assert with_memory(record(), "1Gi", used_bytes=GIB).memory_shrinks == 1


def test_memory_may_shrink_below_present_use_together_with_other_weights() -> None:
    smaller = {**SHARE, "fastgshare/gpu_mem": "1Gi", "fastgshare/weights": "random:1"}
    assert change(record(), annotations=smaller, used_bytes=2 * GIB).memory_shrinks == 1


def test_a_new_function_wants_its_minimum() -> None:
    assert record().replicas == 1
    assert record(labels={"com.openfaas.scale.min": "3"}).replicas == 3


def test_an_update_moves_the_count_into_the_new_labels() -> None:
    five = scaled(record(), 5)
    assert change(five).replicas == 5
    assert change(five, labels={"com.openfaas.scale.max": "2"}).replicas == 2
    assert change(five, labels={"com.openfaas.scale.min": "8"}).replicas == 8


def test_a_function_scaled_to_zero_stays_there_when_it_is_updated() -> None:
    assert change(scaled(record(), 0), labels={"com.openfaas.scale.min": "2"}).replicas == 0


def test_scaling_outside_the_labels_is_refused_naming_the_label() -> None:
    limited = record(labels={"com.openfaas.scale.min": "2", "com.openfaas.scale.max": "4"})
    for replicas, label in ((1, r"scale\.min \(2\)"), (5, r"scale\.max \(4\)")):
        with pytest.raises(BadRequest, match=label):
            scaled(limited, replicas)
    assert [scaled(limited, replicas).replicas for replicas in (0, 2, 4)] == [0, 2, 4]


def test_scaling_keeps_the_revision_and_is_a_new_generation_only_where_it_changes_the_count() -> None:
    before = record()
    assert scaled(before, 1) == before
    assert (scaled(before, 3).revision, scaled(before, 3).generation) == (before.revision, 2)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 5), st.integers(0, 4)), max_size=20))
def test_the_count_is_zero_or_within_the_labels_after_any_sequence(steps: list[tuple[int, int, int]]) -> None:
    current = record()
    for asked, low, extra in steps:
        labels = {"com.openfaas.scale.min": str(low), "com.openfaas.scale.max": str(low + extra)}
        current = change(current, labels=labels)
        if asked == 0 or low <= asked <= low + extra:
            current = scaled(current, asked)
        assert current.replicas == 0 or low <= current.replicas <= low + extra
