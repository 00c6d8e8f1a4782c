"""Router habits, the guard against web pages, and how errors leave."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway_plugin.openfaas.app import create_app
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store
from tests.unit.openfaas.control_api import ControlApi

BODY = {"service": "echo", "image": "gshare/echo:1"}
ALLOWED = {
    "/system/functions": {"GET", "POST", "PUT", "DELETE"},
    "/system/function/echo": {"GET"},
    "/system/scale-function/echo": {"POST"},
    "/system/info": {"GET"},
    "/system/namespaces": {"GET"},
    "/healthz": {"GET"},
    "/gshare/functions": {"GET"},
    "/gshare/devices": {"GET"},
}


@pytest.mark.parametrize("path", ALLOWED)
def test_a_wrong_method_is_405_with_an_empty_body(api: ControlApi, path: str) -> None:
    for method in {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} - ALLOWED[path]:
        answer = api.call(method, path)
        assert (answer.status_code, answer.data) == (405, b""), method


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/nope",
        "/system/functions/",
        "/system/function/",
        "/system/function/echo/",
        "/system/function/a%20b",
        "/system/function/a%2Fb",
        "/system/scale-function/",
        "/system/alert",
    ],
)
def test_an_unknown_path_is_404_in_the_words_of_openfaas_router(api: ControlApi, path: str) -> None:
    answer = api.call("GET", path)
    assert (answer.status_code, answer.data) == (404, b"404 page not found\n")
    assert answer.content_type == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("/system//functions?a=b", "/system/functions?a=b"),
        ("/system/../healthz", "/healthz"),
        ("//evil.example/x", "/evil.example/x"),
        ("/system/./functions/", "/system/functions/"),
        ("//", "/"),
        ("/a//b\r\nX: y\xe4", "/a/b%0D%0AX%3A%20y%E4"),
    ],
)
def test_an_unclean_path_is_sent_to_its_clean_form(api: ControlApi, path: str, clean: str) -> None:
    raw, _, query = path.partition("?")
    answer = api.client.get(
        base_url="http://localhost", path="/", environ_overrides={"PATH_INFO": raw, "QUERY_STRING": query}
    )
    assert (answer.status_code, answer.headers["Location"]) == (301, clean)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8080", "localhost:9", "LOCALHOST", "[::1]:8080"])
def test_hosts_of_this_machine_may_change_things(api: ControlApi, host: str) -> None:
    assert api.client.post("/system/functions", json=BODY, headers={"Host": host}).status_code == 202


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "[::1", ""])
def test_another_host_may_not_since_it_could_be_a_rebound_name(api: ControlApi, host: str) -> None:
    for method in ("POST", "PUT", "DELETE"):
        answer = api.client.open("/system/functions", method=method, json=BODY, headers={"Host": host})
        assert answer.status_code == 403
        assert answer.text.startswith(f"Host: {host!r}")
    assert api.call("GET", "/system/functions").json == []


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:3000", "http://[::1", "http://127.0.0.1:8080.evil", ""]
)
def test_a_page_of_another_origin_may_not_change_things(api: ControlApi, origin: str) -> None:
    headers = {"Host": "127.0.0.1:8080", "Origin": origin, "Content-Type": "text/plain"}
    answer = api.client.post("/system/functions", json=BODY, headers=headers)
    assert answer.status_code == 403
    assert answer.text.startswith(f"Origin: {origin!r}")


def test_a_page_of_our_own_may_change_things(api: ControlApi) -> None:
    headers = {"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"}
    assert api.client.post("/system/functions", json=BODY, headers=headers).status_code == 202


def test_a_body_over_the_limit_is_413_with_the_limit(api: ControlApi) -> None:
    answer = api.deploy(envVars={"A": "x" * 1024**2})
    assert answer.status_code == 413
    assert "1048576" in answer.text


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Basic !", ""])
def test_an_authorization_header_without_sense_is_left_alone(api: ControlApi, header: str) -> None:
    answer = api.client.get("/system/functions", headers={"Authorization": header})
    assert answer.status_code == 200


def test_without_redis_a_call_is_503_and_may_be_tried_again(tmp_path: Path) -> None:
    app = create_app(Settings(home=tmp_path), Store(f"unix://{tmp_path}/absent.sock", timeout_s=1))
    answer = app.test_client().get("/system/functions")
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.text.startswith("Redis: ")
    assert app.test_client().get("/healthz").status_code == 200


def test_what_nobody_foresaw_is_500_in_one_line_and_in_the_log(
    api: ControlApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(store: Store) -> None:
        raise ZeroDivisionError("the inside")

    monkeypatch.setattr(Store, "functions", broken)
    with caplog.at_level(logging.ERROR):
        answer = api.call("GET", "/system/functions")
    assert answer.status_code == 500
    assert answer.text == "internal error; the api log has the details\n"
    assert "ZeroDivisionError: the inside" in caplog.text
