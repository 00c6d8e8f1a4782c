"""What only the real server shows: framing, limits, and a deploy by our own client."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from gateway_plugin.deploy import Action, deploy
from gateway_plugin.model import FunctionSpec
from gateway_plugin.openfaas.bodies import BODY_BYTES_LIMIT
from tests.contract.http_client import HttpClient

ECHO = FunctionSpec(service="echo", image="gshare/echo:1")


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_the_limit_is_413_whatever_its_framing(api: HttpClient, chunked: bool) -> None:
    body = {"service": "echo", "image": "gshare/echo:1", "envVars": {"A": "x" * BODY_BYTES_LIMIT}}
    assert api.call("POST", "/system/functions", body=body, chunked=chunked).status == 413
    assert api.call("GET", "/system/functions").json() == []


def test_a_bare_bearer_header_as_faas_cli_sends_it_is_left_alone(api: HttpClient) -> None:
    answer = api.call("GET", "/system/functions", headers={"Authorization": "Bearer"})
    assert (answer.status, answer.body) == (200, b"[]")


def test_a_rebound_name_or_a_foreign_page_changes_nothing(api: HttpClient) -> None:
    body = {"service": "echo", "image": "gshare/echo:1"}
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert api.call("POST", "/system/functions", body=body, headers=headers).status == 403
    assert api.call("GET", "/system/functions").json() == []


def test_our_own_client_creates_updates_and_tells_a_refusal(api: HttpClient, functions: Path) -> None:
    gateway = f"http://127.0.0.1:{api.port}"
    absent = FunctionSpec(service="absent", image="gshare/absent:1")
    created, refused = deploy([ECHO, absent], gateway)
    (unchanged,) = deploy([ECHO], gateway)
    (updated,) = deploy([msgspec.structs.replace(ECHO, env_vars={"LEVEL": "2"})], gateway)
    actions = (created.action, unchanged.action, updated.action)
    assert actions == (Action.CREATED, Action.UNCHANGED, Action.UPDATED)
    assert refused.action is Action.FAILED
    assert f"looked at {functions}/absent" in refused.message
