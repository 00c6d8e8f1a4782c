"""The client side of a deploy, against a real server with scripted answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from gateway_plugin.deploy import Action, choose_gateway, deploy
from gateway_plugin.errors import GatewayError
from gateway_plugin.model import FunctionSpec
from gateway_plugin.openfaas import headers

ECHO = FunctionSpec(service="echo", image="gshare/echo:1", env_vars={"A": "1"})
OTHER = FunctionSpec(service="other", image="gshare/other:1", namespace="openfaas-fn")


class ScriptedGateway:
    """Answers calls in order, with (status, text), and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, str]] = []
        self.headers: list[str] = []
        self.calls: list[tuple[str, str, FunctionSpec]] = []
        self.unblock = threading.Event()
        self.blocked = False
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                gateway.calls.append((self.command, self.path, msgspec.json.decode(body, type=FunctionSpec)))
                if gateway.blocked:
                    gateway.unblock.wait()
                    return
                status, text = gateway.answers.pop(0)
                self.send_response(status)
                if status == 301:
                    self.send_header("Location", "/elsewhere")
                for name in gateway.headers:
                    self.send_header(name, "yes")
                if status == 503:
                    self.send_header("Retry-After", "0")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_PUT = do_POST = do_GET = answer

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def gateway() -> Iterator[ScriptedGateway]:
    scripted = ScriptedGateway()
    thread = threading.Thread(target=scripted.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield scripted
    scripted.unblock.set()
    scripted.server.shutdown()
    scripted.server.server_close()
    thread.join()


def test_an_existing_function_is_updated_by_one_put(gateway: ScriptedGateway) -> None:
    gateway.answers = [(202, "")]
    (outcome,) = deploy([ECHO], gateway.url)
    assert gateway.calls == [("PUT", "/system/functions", ECHO)]
    assert (outcome.function, outcome.action, outcome.message) == ("echo", Action.UPDATED, "")
    assert outcome.url == f"{gateway.url}/function/echo"


def test_an_update_that_changed_nothing_is_called_unchanged(gateway: ScriptedGateway) -> None:
    gateway.answers, gateway.headers = [(202, "")], [headers.UNCHANGED]
    (outcome,) = deploy([ECHO], gateway.url)
    assert (outcome.action, str(outcome.action)) == (Action.UNCHANGED, "unchanged")


def test_a_missing_function_is_created_by_a_post_of_the_same_body(gateway: ScriptedGateway) -> None:
    gateway.answers = [(404, "not found"), (202, "")]
    (outcome,) = deploy([ECHO], gateway.url)
    assert [(method, spec) for method, _, spec in gateway.calls] == [("PUT", ECHO), ("POST", ECHO)]
    assert outcome.action is Action.CREATED


def test_a_refusal_is_told_in_the_gateways_words_and_the_next_function_is_tried(gateway: ScriptedGateway) -> None:
    gateway.answers = [(400, "image: 'x' is not accepted\n"), (200, "")]
    refused, accepted = deploy([ECHO, OTHER], gateway.url)
    assert refused.action is Action.FAILED
    assert refused.message == f"{gateway.url} answered 400: image: 'x' is not accepted"
    assert (accepted.action, accepted.url) == (Action.UPDATED, f"{gateway.url}/function/other.openfaas-fn")


@pytest.mark.parametrize("status", [201, 301, 500])
def test_no_other_status_counts_as_deployed(gateway: ScriptedGateway, status: int) -> None:
    gateway.answers = [(status, "")]
    (outcome,) = deploy([ECHO], gateway.url)
    assert outcome.action is Action.FAILED
    assert f"answered {status}" in outcome.message


def test_a_gateway_that_says_when_to_come_back_is_asked_again(gateway: ScriptedGateway) -> None:
    gateway.answers = [(503, "Redis is loading"), (404, ""), (503, "Redis is away"), (202, "")]
    (outcome,) = deploy([ECHO], gateway.url)
    assert [method for method, _, _ in gateway.calls] == ["PUT", "PUT", "POST", "POST"]
    assert outcome.action is Action.CREATED


def test_outcomes_come_one_by_one(gateway: ScriptedGateway) -> None:
    gateway.answers = [(202, ""), (202, "")]
    outcomes = deploy([ECHO, OTHER], gateway.url)
    next(outcomes)
    assert len(gateway.calls) == 1
    assert next(outcomes).function == "other"


def test_a_gateway_that_is_not_there_is_said_with_the_way_to_start_it(gateway: ScriptedGateway) -> None:
    gateway.server.server_close()
    (outcome,) = deploy([ECHO], gateway.url)
    assert outcome.action is Action.FAILED
    assert "gshare up" in outcome.message


def test_a_gateway_that_does_not_answer_is_given_up(gateway: ScriptedGateway) -> None:
    gateway.blocked = True
    (outcome,) = deploy([ECHO], gateway.url, timeout_s=0.2)
    assert outcome.message == f"{gateway.url} did not answer within 0.2 s"


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    gateway.answers = [(202, "")]
    (outcome,) = deploy([ECHO], gateway.url)
    assert outcome.action is Action.UPDATED


@pytest.mark.parametrize(
    ("given", "in_stack", "from_env", "chosen"),
    [
        ("", "", "", "http://127.0.0.1:8080"),
        ("http://A.example/", "http://b.example", "http://c.example", "http://a.example"),
        ("", "http://b.example:8080/", "http://c.example", "http://b.example:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/", "http://c.example", "http://c.example"),
        ("https://a.example/openfaas/", "", "", "https://a.example/openfaas"),
    ],
)
def test_the_gateway_is_chosen_in_faas_clis_order(given: str, in_stack: str, from_env: str, chosen: str) -> None:
    assert choose_gateway(given, in_stack, {"OPENFAAS_URL": from_env}) == chosen


@pytest.mark.parametrize("url", ["gateway.example:8080", "ftp://a.example", "http://"])
def test_what_is_no_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(GatewayError, match=r"write e\.g\. http://127\.0\.0\.1:8080"):
        choose_gateway(url, "", {})
