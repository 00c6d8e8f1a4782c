"""The door to Redis, on a real one."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
import redis

from gateway_plugin import store as module
from gateway_plugin.errors import LeaseLost, StoreFormat, StoreUnavailable
from gateway_plugin.model import Device, FunctionRecord, FunctionSpec, FunctionStatus, RouteTable
from gateway_plugin.store import FUNCTION, ROUTES, STATUS, WAKEUP, Store

NAME = "echo.openfaas-fn"
PAGE = Path(__file__).parents[2] / "docs" / "redis.md"


def record(*, replicas: int = 1) -> FunctionRecord:
    spec = FunctionSpec(service="echo", image="gshare/echo:1")
    return FunctionRecord(
        spec=spec, replicas=replicas, revision="r", code_digest="d", created_at="2026-01-01T00:00:00Z"
    )


def raised(before: FunctionRecord | None) -> FunctionRecord:
    return record() if before is None else msgspec.structs.replace(before, replicas=before.replicas + 1)


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store(redis_url)


def test_a_function_is_kept_listed_changed_and_removed(store: Store) -> None:
    assert (store.function(NAME), store.functions()) == (None, [])
    store.update_function(NAME, raised)
    store.update_function(NAME, raised)
    assert store.function(NAME) == record(replicas=2)
    assert store.functions() == [record(replicas=2)]
    assert store.update_function(NAME, lambda before: None) is None
    assert (store.function(NAME), store.functions()) == (None, [])


def test_a_removed_function_takes_what_was_known_of_it_along(store: Store, redis_url: str) -> None:
    store.update_function(NAME, raised)
    store.put_statuses({NAME: FunctionStatus(name=NAME, ready=1)}, gone=[])
    with redis.Redis.from_url(redis_url) as client:
        client.hincrby(module.INVOCATIONS, NAME, 3)
        client.hincrby(module.DEMAND + NAME, "1:0", 3)
        store.update_function(NAME, lambda before: None)
        assert store.status(NAME) == FunctionStatus(name=NAME)
        assert store.invocations() == {}
        assert not client.exists(module.DEMAND + NAME)


def test_a_change_is_made_again_when_somebody_else_wrote_meanwhile(store: Store) -> None:
    store.update_function(NAME, raised)
    seen = []

    def interrupted(before: FunctionRecord | None) -> FunctionRecord:
        seen.append(before.replicas if before else 0)
        if len(seen) == 1:
            store.update_function(NAME, raised)
        return raised(before)

    store.update_function(NAME, interrupted)
    assert seen == [1, 2]
    assert store.function(NAME) == record(replicas=3)


def test_a_change_that_raises_writes_nothing(store: Store) -> None:
    def refuse(before: FunctionRecord | None) -> FunctionRecord:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        store.update_function(NAME, refuse)
    assert store.functions() == []


def test_a_change_is_told_to_who_listens(store: Store, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client, client.pubsub(ignore_subscribe_messages=True) as channel:
        channel.subscribe(module.CHANGED)
        channel.get_message(timeout=5)
        store.update_function(NAME, raised)
        message = channel.get_message(timeout=5)
        assert message is not None
        assert message["data"] == NAME.encode()


@pytest.mark.parametrize("value", ['{"v": 2}', "{}", "[]", "not JSON", '{"v": 1}'])
def test_a_value_of_another_version_or_shape_is_refused_by_its_key(store: Store, redis_url: str, value: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        client.set(FUNCTION + NAME, value)
        client.set(ROUTES, value)
        client.hset(STATUS, NAME, value)
    for read, key in (
        (lambda: store.function(NAME), FUNCTION + NAME),
        (store.routes, ROUTES),
        (store.statuses, STATUS),
    ):
        with pytest.raises(StoreFormat, match=key):
            read()


def test_statuses_devices_and_routes_come_back_as_they_were_put(store: Store) -> None:
    status = FunctionStatus(name=NAME, ready=1)
    device = Device(id="cpu:0", kind="cpu", units=2, memory_bytes=1, cores=(0, 1))
    store.put_statuses({NAME: status}, gone=[])
    store.put_devices((device,))
    table = RouteTable(version=store.next_routes_version())
    store.publish_routes(table)
    assert (store.statuses(), store.status(NAME)) == ({NAME: status}, status)
    assert (store.devices(), store.routes()) == ([device], table)
    store.put_statuses({}, gone=[NAME])
    assert store.statuses() == {}
    assert store.next_routes_version() > table.version


def test_a_wake_up_is_given_out_once(store: Store, redis_url: str) -> None:
    assert store.take_wakeups([]) == []
    with redis.Redis.from_url(redis_url) as client:
        client.set(WAKEUP + NAME, "1")
    assert store.take_wakeups(["other.openfaas-fn", NAME]) == [NAME]
    assert store.take_wakeups([NAME]) == []


def test_only_one_loop_holds_the_lease_and_fences_only_grow(store: Store) -> None:
    first = store.acquire_lease("a", ttl_s=60)
    assert first is not None
    assert store.acquire_lease("b", ttl_s=60) is None
    store.extend_lease("a", ttl_s=60)
    store.release_lease("b")
    with pytest.raises(LeaseLost):
        store.extend_lease("b", ttl_s=60)
    store.release_lease("a")
    second = store.acquire_lease("b", ttl_s=60)
    assert second is not None
    assert second > first


def test_a_redis_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    away = Store(f"unix://{tmp_path}/absent.sock", timeout_s=1)
    for call in (away.ping, away.functions, away.statuses, lambda: away.update_function(NAME, raised)):
        with pytest.raises(StoreUnavailable, match="Redis"):
            call()


def test_the_page_of_keys_names_every_key_and_no_other() -> None:
    own = {value for name, value in vars(module).items() if name.isupper() and str(value).startswith(module.PREFIX)}
    documented = {key.removesuffix("NAME") for key in re.findall(r"`(gshare:[\w:]+)`", PAGE.read_text())}
    assert documented == own - {module.PREFIX}
