"""Requests recorded from a real faas-cli, replayed against the API: same status, same shapes.

Where this release answers otherwise than the stand-in server of the recording did, DIFFERENCES says how and why.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis

from gateway_plugin.errors import StackError
from gateway_plugin.model import FunctionSpec, FunctionStatus
from gateway_plugin.stack import read_stack
from gateway_plugin.store import INVOCATIONS, Store
from tests.contract.http_client import Answer, HttpClient

RECORDED = json.loads((Path(__file__).parents[1] / "data" / "faas_cli_requests.json").read_text())
CASES: dict[str, dict[str, Any]] = {case["name"]: case for case in RECORDED["cases"]}
REPLAYED = [name for name, case in CASES.items() if case["requests"]]
WITH_BODY = [name for name in REPLAYED if CASES[name]["requests"][0]["body"]]

ONE_NAMESPACE = "there is one namespace, so deploying into or listing another is 400"
DIFFERENCES: dict[str, tuple[list[int], str]] = {
    "deploy_namespace_from_stack": ([400, 400], ONE_NAMESPACE),
    "deploy_namespace_flag": ([400, 400], ONE_NAMESPACE),
    "list_namespace": ([400], ONE_NAMESPACE),
    "remove_by_stack": ([404], "nothing of that name is in another namespace"),
}
EXISTING = {name: ["resnet"] for name in CASES if name.startswith(("list", "describe", "ready_function"))} | {
    "deploy_existing_function": ["resnet"],
    "deploy_update_false_existing": ["resnet"],
    "deploy_replace": ["resnet"],
    "deploy_flags_override": ["resnet"],
    "deploy_filter": ["echo"],
    "deploy_lang_template_present": ["echo"],
    "deploy_lang_no_read_template": ["echo"],
    "deploy_lang_fprocess_in_stack": ["echo"],
    "deploy_stack_env_default": ["echo"],
    "deploy_no_envsubst": ["echo"],
    "deploy_gateway_flag_over_stack": ["echo"],
    "deploy_openfaas_url_env": ["echo"],
    "up_skip_build_push": ["echo"],
    "describe_not_ready": ["resnet", "cold"],
    "remove_by_name": ["resnet"],
}
STACKS = ["deploy_bare", "deploy_lang_template_present", "deploy_lang_fprocess_in_stack", "deploy_stack_env_default"]


def without_secrets(body: Any) -> Any:
    """This release keeps no secrets; the rest of a recorded deployment is replayed as it is."""
    return {key: value for key, value in body.items() if key != "secrets"} if isinstance(body, dict) else body


def replay(api: HttpClient, case: dict[str, Any], *, chunked: bool = False) -> Iterator[Answer]:
    for request in case["requests"]:
        path = request["path"] + (f"?{request['raw_query']}" if request["raw_query"] else "")
        headers = {k: v for k, v in request["headers"].items() if k not in ("Host", "Content-Length")}
        body = without_secrets(request["body"]) or None
        yield api.call(request["method"], path, body=body, headers=headers, chunked=chunked)


def deploy(api: HttpClient, *names: str) -> None:
    for name in names:
        body = {"service": name, "image": f"registry.example/team/{name}:1.0"}
        if name == "resnet":
            body = without_secrets(CASES["deploy_new_function"]["requests"][1]["body"])
        assert api.call("POST", "/system/functions", body=body).status == 202


@pytest.mark.parametrize(("name", "chunked"), [*product(REPLAYED, [False]), *product(WITH_BODY, [True])])
def test_a_recorded_command_gets_the_status_that_it_needs(api: HttpClient, name: str, chunked: bool) -> None:
    deploy(api, *EXISTING.get(name, []))
    recorded = [request["response"]["status"] for request in CASES[name]["requests"]]
    expected, _ = DIFFERENCES.get(name, (recorded, ""))
    answers = list(replay(api, CASES[name], chunked=chunked))
    assert [answer.status for answer in answers] == expected, [answer.body for answer in answers]


@pytest.mark.parametrize("name", ["deploy_bare", "deploy_replace", "deploy_existing_function", "remove_by_name"])
def test_an_accepted_change_has_an_empty_body(api: HttpClient, name: str) -> None:
    deploy(api, *EXISTING.get(name, []))
    last = list(replay(api, CASES[name]))[-1]
    assert (last.status, last.body) == (202, b"")


def test_a_recorded_deployment_with_a_secret_is_refused_by_the_secrets_name(api: HttpClient) -> None:
    for request in CASES["deploy_new_function"]["requests"]:
        answer = api.call(request["method"], request["path"], body=request["body"])
        assert answer.status == 400
        assert b"no such secret: 'hub-token'" in answer.body


@pytest.mark.parametrize("name", ["list", "describe", "describe_json", "list_verbose"])
def test_a_deployed_function_is_shown_as_the_recorded_client_read_it(
    api: HttpClient, store: Store, redis_url: str, name: str
) -> None:
    recorded = [json.loads(request["response"]["body"]) for request in CASES[name]["requests"]]
    shown = copy.deepcopy(recorded[-1][0])
    body = {key: value for key, value in shown.items() if key not in ("name", "invocationCount", "createdAt")}
    api.call("POST", "/system/functions", body=without_secrets(body) | {"service": "resnet"})
    store.put_statuses({"resnet.openfaas-fn": FunctionStatus(name="resnet.openfaas-fn", ready=1)}, gone=[])
    with redis.Redis.from_url(redis_url) as client:
        client.hincrby(INVOCATIONS, "resnet.openfaas-fn", shown["invocationCount"])
    for answer, expected in zip(replay(api, CASES[name]), recorded, strict=True):
        assert answer.headers["Content-Type"] == "application/json"
        assert comparable(answer.json()) == comparable(expected)


def comparable(shown: Any) -> Any:
    """Without what cannot be the same: the hour of the deploy, and what this release does not measure or keep."""
    if isinstance(shown, list):
        return [comparable(function) for function in shown]
    return {key: value for key, value in shown.items() if key not in ("createdAt", "usage", "secrets")}


@pytest.mark.parametrize("name", ["version", "version_json"])
def test_version_finds_gateway_and_provider(api: HttpClient, name: str) -> None:
    (answer,) = replay(api, CASES[name])
    recorded = json.loads(CASES[name]["requests"][0]["response"]["body"])
    assert set(answer.json()) == set(recorded)
    assert set(recorded["provider"]) <= set(answer.json()["provider"])
    assert set(recorded["version"]) <= set(answer.json()["version"])
    assert set(recorded["provider"]["version"]) <= set(answer.json()["provider"]["version"])


@pytest.mark.parametrize("name", [*STACKS, "up_skip_build_push", "deploy_openfaas_url_env"])
def test_our_own_client_sends_what_faas_cli_sent_for_the_same_files(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    write_files(tmp_path, case["files"])
    (function,) = read_stack(tmp_path / "stack.yaml", case.get("env") or {}).functions
    assert sent_by_us(function.spec) == case["requests"][-1]["body"]


@pytest.mark.parametrize("name", ["deploy_new_function", "deploy_existing_function"])
def test_a_full_stack_entry_becomes_what_faas_cli_sent(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    files = dict(case["files"])
    files["stack.yaml"] = files["stack.yaml"].replace("    secrets:\n      - hub-token\n", "")
    write_files(tmp_path, files)
    (function,) = read_stack(tmp_path / "stack.yaml", case.get("env") or {}).functions
    assert sent_by_us(function.spec) == without_secrets(case["requests"][-1]["body"])


@pytest.mark.parametrize("name", ["deploy_wrong_provider_name", "deploy_wrong_version"])
def test_a_stack_that_faas_cli_refuses_is_refused(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, CASES[name]["files"])
    with pytest.raises(StackError, match="is not accepted"):
        read_stack(tmp_path / "stack.yaml", {})


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def sent_by_us(spec: FunctionSpec) -> Any:
    """faas-cli writes empty labels and annotations out; we leave them out, which means the same."""
    return {"labels": {}, "annotations": {}, **json.loads(msgspec.json.encode(spec))}
