"""POST, PUT and DELETE /system/functions, and what they leave behind."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from gateway_plugin.model import FunctionStatus, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.store import Store
from tests.unit.openfaas.control_api import ControlApi

NAME = "echo.openfaas-fn"


def running(store: Store, *, memory_bytes: int = 0, code_digest: str = "") -> None:
    """What the loop says while one replica of echo is ready."""
    spec = ReplicaSpec(id="echo-1", function=NAME, revision="r", code_digest=code_digest, slot=0)
    replica = ReplicaStatus(spec=spec, state=ReplicaState.READY, memory_bytes=memory_bytes)
    store.put_statuses({NAME: FunctionStatus(name=NAME, ready=1, replicas=(replica,))}, gone=[])


def snapshots(api: ControlApi) -> set[str]:
    return {path.name for path in (api.home / "code").iterdir()}


def test_a_new_function_is_accepted_with_an_empty_body_and_shows_its_minimum_of_replicas(api: ControlApi) -> None:
    answer = api.deploy(labels={"com.openfaas.scale.min": "2"})
    assert (answer.status_code, answer.data) == (202, b"")
    found = api.function()
    assert (found["replicas"], found["availableReplicas"], found["invocationCount"]) == (2, 0, 0)


def test_created_at_is_rfc_3339_with_a_zone_and_survives_updates(api: ControlApi) -> None:
    api.deploy()
    created_at = str(api.function()["createdAt"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", created_at)
    api.deploy("PUT", envVars={"A": "1"})
    assert api.function()["createdAt"] == created_at


def test_every_key_of_a_deployment_is_shown_again_and_empty_ones_are_left_out(api: ControlApi) -> None:
    written: dict[str, Any] = {
        "envProcess": "python index.py",
        "envVars": {"MODEL": "a"},
        "constraints": ["zone=b"],
        "labels": {"owner": "me"},
        "annotations": {"topic": "images"},
        "limits": {"memory": "512Mi"},
        "requests": {"cpu": "100m"},
        "readOnlyRootFilesystem": True,
    }
    api.deploy(**written)
    found = api.function()
    assert {key: found[key] for key in written} == written
    assert (found["name"], found["image"], found["namespace"]) == ("echo", "gshare/echo:1", "openfaas-fn")
    api.make_code("bare")
    api.deploy(service="bare", image="gshare/bare:1")
    assert set(api.function("bare")) == {
        "name",
        "image",
        "namespace",
        "invocationCount",
        "replicas",
        "availableReplicas",
        "createdAt",
    }


def test_null_is_as_good_as_absent_and_unknown_keys_are_left_alone(api: ControlApi) -> None:
    answer = api.deploy(
        labels=None, annotations=None, envVars=None, secrets=None, limits=None, registryAuth="x", network="func"
    )
    assert answer.status_code == 202


def test_yaml_booleans_and_numbers_become_text(api: ControlApi) -> None:
    api.deploy(labels={"com.openfaas.scale.zero": True, "com.openfaas.scale.max": 4}, envVars={"RATE": 0.5})
    assert api.function()["labels"] == {"com.openfaas.scale.zero": "true", "com.openfaas.scale.max": "4"}
    assert api.function()["envVars"] == {"RATE": "0.5"}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b"", "body: empty"),
        (b"{", "not a JSON object"),
        (b"[]", "not a JSON object"),
        (b'"echo"', "not a JSON object"),
        (b"\xff\xfe", "not a JSON object"),
        (b'{"labels": ' + b'{"a":' * 9000 + b"1" + b"}" * 9001, "not a JSON object"),
        (b"{}", "service"),
        (b'{"service": "echo"}', "image"),
        (b'{"service": 1, "image": "a"}', "service"),
        (b'{"service": "echo", "image": "a", "labels": []}', "labels"),
        (b'{"service": "echo", "image": "a", "labels": {"a": {}}}', "labels"),
        (b'{"service": "echo", "image": "a", "secrets": "s"}', "secrets"),
    ],
)
def test_a_body_that_is_no_deployment_is_refused_naming_what_is_wrong(api: ControlApi, body: bytes, named: str) -> None:
    answer = api.client.post("/system/functions", data=body, base_url="http://localhost")
    assert answer.status_code == 400
    assert named in answer.text
    assert answer.content_type == "text/plain; charset=utf-8"


def test_a_refused_deployment_leaves_nothing_behind(api: ControlApi, store: Store) -> None:
    assert api.deploy(service="My_Project").status_code == 400
    assert api.deploy(image="gshare/absent:1").status_code == 400
    assert api.deploy(secrets=["hub-token"]).status_code == 400
    assert store.functions() == []
    assert not (api.home / "code").exists()


def test_a_function_that_exists_is_not_created_again(api: ControlApi) -> None:
    api.deploy()
    answer = api.deploy(image="gshare/absent:2")
    assert answer.status_code == 409
    assert "PUT changes it" in answer.text


def test_a_function_that_does_not_exist_is_not_updated(api: ControlApi) -> None:
    answer = api.deploy("PUT", image="gshare/absent:2")
    assert answer.status_code == 404
    assert NAME in answer.text


def test_an_unchanged_update_keeps_revision_and_generation(api: ControlApi, store: Store) -> None:
    first = api.deploy()
    before = store.function(NAME)
    second = api.deploy("PUT")
    assert second.status_code == 202
    assert second.headers["X-Gshare-Revision"] == first.headers["X-Gshare-Revision"]
    assert (first.headers.get("X-Gshare-Unchanged"), second.headers.get("X-Gshare-Unchanged")) == (None, "yes")
    assert store.function(NAME) == before


def test_edited_code_makes_another_revision_under_the_same_tag(api: ControlApi, store: Store) -> None:
    first = api.deploy()
    api.make_code("echo", "changed = True\n")
    second = api.deploy("PUT")
    assert second.headers["X-Gshare-Revision"] != first.headers["X-Gshare-Revision"]
    assert "X-Gshare-Unchanged" not in second.headers
    record = store.function(NAME)
    assert record is not None
    package = api.home / "code" / record.code_digest / "function"
    assert (package / "handler.py").read_text() == "changed = True\n"


def test_memory_below_what_runs_now_is_a_conflict_and_changes_nothing(api: ControlApi, store: Store) -> None:
    api.deploy(annotations={"fastgshare/gpu_mem": "2Gi"})
    running(store, memory_bytes=1024**3 + 1)
    answer = api.deploy("PUT", annotations={"fastgshare/gpu_mem": "1Gi"})
    assert answer.status_code == 409
    assert "1073741825 bytes" in answer.text
    assert api.function()["annotations"] == {"fastgshare/gpu_mem": "2Gi"}


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"functionName": "echo"}, "/system/functions"),
        ({"functionName": "echo.openfaas-fn"}, "/system/functions"),
        ({"functionName": "echo", "namespace": "openfaas-fn"}, "/system/functions"),
        ({"functionName": "echo"}, "/system/functions?namespace=openfaas-fn"),
    ],
)
def test_a_function_is_deleted_by_a_json_body_with_the_namespace_anywhere(
    api: ControlApi, body: dict[str, str], path: str
) -> None:
    api.deploy()
    answer = api.call("DELETE", path, body)
    assert (answer.status_code, answer.data) == (202, b"")
    assert api.read("/system/functions") == []


def test_deleting_what_is_not_there_or_not_named_is_told_apart(api: ControlApi) -> None:
    assert api.call("DELETE", "/system/functions", {"functionName": "echo"}).status_code == 404
    assert api.call("DELETE", "/system/functions", {"functionName": "echo", "namespace": "team-a"}).status_code == 404
    assert api.call("DELETE", "/system/functions", {"functionName": ""}).status_code == 400
    assert api.call("DELETE", "/system/functions", {}).status_code == 400
    assert api.call("DELETE", "/system/functions").status_code == 400


def test_two_namespaces_that_differ_are_refused(api: ControlApi) -> None:
    api.deploy()
    answer = api.call("DELETE", "/system/functions?namespace=openfaas-fn", {"functionName": "echo.team-a"})
    assert answer.status_code == 400
    assert "openfaas-fn and team-a are both given" in answer.text


def test_deploying_into_another_namespace_is_refused(api: ControlApi) -> None:
    for method in ("POST", "PUT"):
        answer = api.deploy(method, namespace="team-a")
        assert answer.status_code == 400
        assert "'team-a' does not exist" in answer.text


def test_code_that_a_running_replica_uses_outlives_its_update_and_goes_later(api: ControlApi, store: Store) -> None:
    api.deploy()
    (old,) = snapshots(api)
    running(store, code_digest=old)
    api.make_code("echo", "changed = True\n")
    api.deploy("PUT")
    age(api.home / "code" / old)
    api.make_code("other", "other = True\n")
    api.deploy(service="other", image="gshare/other:1")
    api.call("DELETE", "/system/functions", {"functionName": "other"})
    assert old in snapshots(api)

    store.put_statuses({}, gone=[NAME])
    api.deploy(service="other", image="gshare/other:1")
    age(api.home / "code" / old)
    api.call("DELETE", "/system/functions", {"functionName": "other"})
    assert old not in snapshots(api)


def test_code_that_lies_in_the_way_of_tidying_up_does_not_fail_the_deploy(
    api: ControlApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.deploy()

    def broken(path: Path) -> None:
        raise PermissionError(path)

    monkeypatch.setattr("gateway_plugin.snapshots.shutil.rmtree", broken)
    monkeypatch.setattr("gateway_plugin.snapshots.KEEP_UNUSED_S", -1.0)
    assert api.call("DELETE", "/system/functions", {"functionName": "echo"}).status_code == 202


def age(snapshot: Path) -> None:
    os.utime(snapshot, (0, 0))
