"""GET of functions, scale calls, and the calls that ask about the gateway itself."""

from __future__ import annotations

import platform

import pytest
import redis
from gshare.share import Kind
from gshare.wire import LiveConfig

from gateway_plugin.model import Device, FunctionStatus, Place, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.store import INVOCATIONS, Store
from tests.unit.openfaas.control_api import ControlApi

NAME = "echo.openfaas-fn"
DEVICE = Device(id="cpu:0", kind="cpu", units=4, memory_bytes=8 * 1024**3, cores=(0, 1, 2, 3))


def scale(api: ControlApi, replicas: object, *, path: str = "echo") -> int:
    return api.call("POST", f"/system/scale-function/{path}", {"serviceName": "", "replicas": replicas}).status_code


def ready_replica(*, units: tuple[int, ...] = (1,)) -> FunctionStatus:
    spec = ReplicaSpec(
        id="echo-1",
        function=NAME,
        revision="r1",
        code_digest="",
        slot=0,
        kind=Kind.PINNED,
        place=Place(DEVICE.id, units),
        live=LiveConfig(quota_request=0.15, memory_bytes=1024),
        live_version=3,
    )
    replica = ReplicaStatus(
        spec=spec, state=ReplicaState.READY, pid=42, weights="random:0", weights_digest="d", acked_version=2
    )
    return FunctionStatus(name=NAME, ready=1, pending=1, reason="no room", replicas=(replica,))


def test_an_empty_list_is_an_empty_array(api: ControlApi) -> None:
    answer = api.call("GET", "/system/functions")
    assert (answer.data, answer.content_type) == (b"[]", "application/json")


@pytest.mark.parametrize("query", ["", "?namespace=", "?namespace=openfaas-fn", "?usage=1"])
def test_the_list_has_the_functions_of_the_default_namespace_by_name(api: ControlApi, query: str) -> None:
    api.make_code("another")
    api.deploy()
    api.deploy(service="another", image="gshare/another:1")
    listed = api.read(f"/system/functions{query}")
    assert [function["name"] for function in listed] == ["another", "echo"]


def test_the_list_of_an_unknown_namespace_is_refused(api: ControlApi) -> None:
    assert api.call("GET", "/system/functions?namespace=team-a").status_code == 400


@pytest.mark.parametrize("path", ["echo", "echo.openfaas-fn", "echo?namespace=openfaas-fn", "echo?usage=true"])
def test_one_function_is_found_with_and_without_its_namespace(api: ControlApi, path: str) -> None:
    api.deploy()
    assert api.function(path)["name"] == "echo"


@pytest.mark.parametrize("path", ["nope", "echo.team-a", "echo?namespace=team-a", "a.echo.openfaas-fn", "Echo"])
def test_a_function_that_is_not_there_is_404(api: ControlApi, path: str) -> None:
    api.deploy()
    assert api.call("GET", f"/system/function/{path}").status_code == 404


def test_counts_are_those_of_loop_and_data_plane(api: ControlApi, store: Store, redis_url: str) -> None:
    api.deploy()
    store.put_statuses({NAME: ready_replica()}, gone=[])
    with redis.Redis.from_url(redis_url) as client:
        client.hincrby(INVOCATIONS, NAME, 7)
    for found in (api.function(), api.read("/system/functions")[0]):
        assert (found["replicas"], found["availableReplicas"], found["invocationCount"]) == (1, 1, 7)


def test_a_scale_call_is_accepted_and_visible_at_once(api: ControlApi) -> None:
    api.deploy()
    for path, replicas in (("echo", 3), ("echo.openfaas-fn", 0), ("echo?namespace=openfaas-fn", 20)):
        assert scale(api, replicas, path=path) == 202
        assert api.function()["replicas"] == replicas


@pytest.mark.parametrize("replicas", [-1, 21, 1.5, "2", True, None])
def test_a_count_that_cannot_be_is_refused_and_changes_nothing(api: ControlApi, replicas: object) -> None:
    api.deploy()
    assert scale(api, replicas) == 400
    assert api.function()["replicas"] == 1


def test_scaling_what_is_not_there_is_404(api: ControlApi) -> None:
    assert scale(api, 1, path="nope") == 404


def test_info_has_the_shape_of_a_gateway_with_its_provider(api: ControlApi) -> None:
    info = api.read("/system/info")
    assert set(info) == {"provider", "version", "arch"}
    assert info["provider"]["provider"] == "fast-gshare"
    assert info["provider"]["orchestration"] == "process"
    assert set(info["provider"]["version"]) == set(info["version"]) == {"commit_message", "sha", "release"}
    assert info["arch"] == platform.machine()


def test_the_only_namespace_is_listed(api: ControlApi) -> None:
    assert api.read("/system/namespaces") == ["openfaas-fn"]


def test_health_is_200_with_an_empty_body(api: ControlApi) -> None:
    answer = api.call("GET", "/healthz")
    assert (answer.status_code, answer.data) == (200, b"")


def test_our_own_list_shows_the_share_as_asked_and_every_replica_as_it_runs(api: ControlApi, store: Store) -> None:
    share = {"fastgshare/gpu_sm_partition": "24", "fastgshare/gpu_quota_request": "0.15", "fastgshare/slo_ms": "69"}
    api.deploy(annotations=share)
    store.put_devices((DEVICE,))
    store.put_statuses({NAME: ready_replica()}, gone=[])
    (found,) = api.read("/gshare/functions")
    assert (found["name"], found["wanted"], found["ready"], found["pending"]) == (NAME, 1, 1, 1)
    assert (found["reason"], found["slo_ms"], found["url_path"]) == ("no room", 69.0, "/function/echo")
    assert found["share"] == {
        "text": "24 % × 0.15–1.00",
        "kind": "pinned",
        "sm_partition": 24,
        "quota_request": 0.15,
        "quota_limit": 1.0,
        "memory_bytes": None,
        "enforced": ["space", "time"],
    }
    (replica,) = found["replicas"]
    assert (replica["id"], replica["state"], replica["pid"]) == ("echo-1", "ready", 42)
    assert (replica["device"], replica["units"], replica["effective_sm_partition"]) == ("cpu:0", [1], 25.0)
    assert (replica["live_version"], replica["acked_version"], replica["weights"]) == (3, 2, "random:0")


def test_devices_show_what_is_asked_of_each_unit(api: ControlApi, store: Store) -> None:
    store.put_devices((DEVICE, Device(id="cpu:1", kind="cpu", units=1, memory_bytes=1)))
    store.put_statuses({NAME: ready_replica(units=(1, 2))}, gone=[])
    first, second = api.read("/gshare/devices")
    assert (first["id"], first["requested"], first["replicas"]) == ("cpu:0", [0.0, 0.15, 0.15, 0.0], ["echo-1"])
    assert first["requested_memory_bytes"] == 1024
    assert (second["id"], second["requested"], second["replicas"]) == ("cpu:1", [0.0], [])
