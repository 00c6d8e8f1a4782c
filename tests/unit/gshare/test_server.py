"""The app of a replica as HTTP clients see it, with real functions in it."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from flask.testing import FlaskClient
from gshare.config import ReplicaConfig
from gshare.errors import ConfigError
from gshare.server import create_app, runtime_of
from gshare.wire import LiveConfig

from tests.served_app import loaded_app, served

MIRROR = """
import gshare.errors

def handle(event, context):
    if event.path == "/fault":
        raise ValueError("secret detail")
    if event.path == "/refuse":
        raise gshare.errors.BadInput("no")
    if event.path == "/nan":
        return {"score": float("nan")}
    if event.path == "/exit":
        raise SystemExit(4)
    if event.path == "/png":
        return bytes(range(256)), 200, {"Content-Type": "image/png"}
    return {
        "method": event.method,
        "path": event.path,
        "query": event.query.to_dict(flat=False),
        "sent": event.body.hex(),
        "agent": event.headers.get("user-agent"),
        "hostname": context.hostname,
    } if event.path != "/body" else event.body
"""
SQUARES = """
from dataclasses import dataclass
import torch
from gshare.errors import BadInput
from gshare.handler import Handler
from gshare.reply import Reply

class Squares(Handler):
    def load(self, context): ...
    def example(self): return 1.0
    def decode(self, request):
        number = request.json(float)
        if number == 13: raise BadInput("13 is unlucky")
        if number == 14: raise KeyError("decode")
        return number
    def forward(self, items):
        if 15 in items: raise RuntimeError("cannot square 15")
        if 17 in items: raise SystemExit("enough")
        return [float("inf") if item == 16 else item * item for item in items]
    def encode(self, output, request):
        if request.query.get("as") == "reply":
            return Reply({"square": output}, 201, {"X-Own": "yes"})
        return {"square": output}
"""


@pytest.fixture(scope="module")
def mirror() -> Iterator[FlaskClient]:
    with served(MIRROR, {"GSHARE_MAX_BODY_BYTES": "100000", "GSHARE_FUNCTION": "mirror.fn"}) as client:
        yield client


@pytest.fixture(scope="module")
def squares() -> Iterator[FlaskClient]:
    with served(SQUARES, {"GSHARE_MAX_BATCH": "8", "GSHARE_MAX_BATCH_DELAY_MS": "200"}) as client:
        yield client


def test_path_query_and_body_reach_the_function_untouched(mirror: FlaskClient) -> None:
    seen = mirror.post("/a//b%2Fc//d?x=1&x=2&y=%E2%9C%93", data=b"\x00\xff", headers={"User-Agent": "me"}).get_json()

    assert seen["path"] == "/a//b/c//d"
    assert seen["query"] == {"x": ["1", "2"], "y": ["✓"]}
    assert (seen["sent"], seen["agent"]) == ("00ff", "me")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_reaches_the_function(mirror: FlaskClient, method: str) -> None:
    assert mirror.open("/", method=method).get_json()["method"] == method


def test_head_is_answered_without_a_body(mirror: FlaskClient) -> None:
    answer = mirror.head("/png")

    assert (answer.status_code, answer.data, answer.headers["Content-Type"]) == (200, b"", "image/png")


def test_bytes_go_in_and_out_unchanged(mirror: FlaskClient) -> None:
    every_byte = bytes(range(256)) * 300

    assert hashlib.sha256(mirror.post("/body", data=every_byte).data).digest() == hashlib.sha256(every_byte).digest()
    assert mirror.get("/png").data == bytes(range(256))


def test_a_body_over_the_limit_is_413_with_the_limit(mirror: FlaskClient) -> None:
    refused = mirror.post("/", data=bytes(100_001))

    assert (refused.status_code, refused.get_json()["error"]["code"]) == (413, "too_large")
    assert "100000 bytes" in refused.get_json()["error"]["message"]


def test_a_fault_of_the_function_is_500_with_kind_and_line_but_no_trace(
    mirror: FlaskClient, caplog: pytest.LogCaptureFixture
) -> None:
    failed = mirror.get("/fault")

    assert failed.status_code == 500
    assert failed.get_json() == {
        "error": {
            "code": "model_fault",
            "message": "handle() raised ValueError: secret detail (function/handler.py, line 6)",
            "retryable": False,
        }
    }
    assert "Traceback" in caplog.text


def test_a_function_that_calls_exit_fails_that_request_and_nothing_else(mirror: FlaskClient) -> None:
    answer = mirror.get("/exit")

    assert answer.status_code == 500
    assert "handle() raised SystemExit: 4" in answer.get_json()["error"]["message"]


def test_a_function_may_refuse_with_the_errors_of_the_runtime(mirror: FlaskClient) -> None:
    assert mirror.get("/refuse").status_code == 400


def test_nan_is_a_fault_that_names_its_place(mirror: FlaskClient) -> None:
    failed = mirror.get("/nan")

    assert (failed.status_code, failed.get_json()["error"]["code"]) == (500, "non_finite_output")
    assert "nan at $.score" in failed.get_json()["error"]["message"]


def test_calls_are_counted_by_status_and_errors_by_code(mirror: FlaskClient) -> None:
    before = metrics(mirror)
    mirror.get("/")
    mirror.get("/nan")
    after = metrics(mirror)

    def grown(name: str) -> float:
        return after[name] - before.get(name, 0.0)

    assert grown('gshare_requests_total{code="200",function_name="mirror.fn"}') == 1
    assert grown('gshare_requests_total{code="500",function_name="mirror.fn"}') == 1
    assert grown('gshare_errors_total{error="non_finite_output",function_name="mirror.fn"}') == 1
    assert grown('gshare_request_seconds_count{function_name="mirror.fn"}') == 2
    assert after['gshare_inflight{function_name="mirror.fn"}'] == 0


def metrics(client: FlaskClient) -> dict[str, float]:
    lines = client.get("/metrics").text.splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_the_runtimes_own_pages_do_not_count_as_calls(mirror: FlaskClient) -> None:
    before = mirror.get("/_/status").get_json()["counts"]
    for page in ("/_/health", "/_/ready", "/_/status", "/metrics"):
        assert mirror.get(page).status_code == 200

    assert mirror.get("/_/status").get_json()["counts"] == before
    assert mirror.post("/_/health").status_code == 405


def test_the_status_says_everything_a_replica_knows_of_itself() -> None:
    env = {
        "GSHARE_FUNCTION": "f.ns",
        "GSHARE_REPLICA": "r1",
        "GSHARE_REVISION": "abc",
        "GSHARE_DEVICE": "cpu:0",
        "GSHARE_CPUS": "0",
        "GSHARE_SM_PARTITION": "24",
        "GSHARE_QUOTA_REQUEST": "0.15",
        "GSHARE_SLO_MS": "69",
        "GSHARE_GPU_MEM": "1000000000",
    }
    with served(SQUARES, env) as client:
        status = client.get("/_/status").get_json()

    assert (status["function"], status["replica"], status["revision"]) == ("f.ns", "r1", "abc")
    assert (status["state"], status["reason"]) == ("ready", "")
    assert status["device"] == {"id": "cpu:0", "kind": "cpu", "threads": 1}
    assert status["share"] == {
        "sm_partition": 24,
        "quota_request": 0.15,
        "quota_limit": 1.0,
        "memory_bytes": 10**9,
    }
    assert (status["turn"]["gating"], status["turn"]["tokens"]) == ("none", 0)
    assert status["turn"]["used_s"] > 0
    assert status["limits"] == {"inflight": 16, "queued": 0, "exec_timeout_s": 60.0}
    assert status["live"]["slo_ms"] == 69
    assert (status["managed"], status["live_version"]) == ("no", 0)
    assert status["weights"] == {"source": "", "digest": ""}


def test_one_bad_request_of_many_at_once_fails_alone(squares: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    app = squares.application
    numbers = [1, 2, 13, 4, 15, 6, 16, 8]
    with ThreadPoolExecutor(len(numbers)) as pool:
        answers = list(pool.map(lambda n: app.test_client().post("/", json=n), numbers))

    assert [answer.status_code for answer in answers] == [200, 200, 400, 200, 500, 200, 500, 200]
    assert [a.get_json()["square"] for a in answers if a.status_code == 200] == [1, 4, 16, 36, 64]
    assert [a.get_json()["error"]["code"] for a in answers if a.status_code == 500] == [
        "model_fault",
        "non_finite_output",
    ]


def test_items_that_come_together_share_a_batch(squares: FlaskClient) -> None:
    runtime = runtime_of(squares.application)
    before = runtime.metrics.counts.batches
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: squares.application.test_client().post("/", json=n), range(8)))

    assert runtime.metrics.counts.batches - before < 8


def test_live_settings_change_how_a_running_replica_batches(squares: FlaskClient) -> None:
    runtime = runtime_of(squares.application)
    old = runtime.live
    runtime.configure(LiveConfig(max_batch=1), 2)
    before = runtime.metrics.counts.batches
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: squares.application.test_client().post("/", json=n), range(4)))
    runtime.configure(old, 3)

    assert runtime.metrics.counts.batches - before == 4


def test_a_model_that_calls_exit_leaves_the_device_thread_alive(squares: FlaskClient) -> None:
    answer = squares.post("/", json=17)

    assert answer.status_code == 500
    assert "forward() raised SystemExit: enough" in answer.get_json()["error"]["message"]
    assert squares.post("/", json=3).get_json() == {"square": 9}


def test_encode_may_set_status_and_headers(squares: FlaskClient) -> None:
    answer = squares.post("/?as=reply", json=3)

    assert (answer.status_code, answer.headers["X-Own"], answer.get_json()) == (201, "yes", {"square": 9})


def test_a_fault_in_decode_names_the_line(squares: FlaskClient) -> None:
    message = squares.post("/", json=14).get_json()["error"]["message"]

    assert re.search(r"decode\(\) raised KeyError: 'decode' \(function/handler.py, line \d+\)", message)


def test_a_model_function_refuses_an_empty_body_and_a_compressed_one(squares: FlaskClient) -> None:
    empty = squares.post("/")
    packed = squares.post("/", data=b"x", headers={"Content-Encoding": "br"})

    assert (empty.status_code, packed.status_code) == (400, 415)
    assert "'br' is not read" in packed.get_json()["error"]["message"]
    assert squares.post("/", json=2, headers={"Content-Encoding": "Identity"}).status_code == 200


@pytest.mark.parametrize(
    ("handler", "reason"),
    [
        (
            SQUARES.replace("def load(self, context): ...", "def load(self, context): open('/gone')"),
            "FileNotFoundError",
        ),
        (SQUARES.replace("return 1.0", "return 15"), "the warm-up run failed: RuntimeError: cannot square 15"),
        (SQUARES.replace("return [float", "return [] and [float"), r"forward\(\) returned 0 outputs for 1 item"),
        ("x = 1", "neither a subclass of gshare.handler.Handler nor"),
        (SQUARES.replace("def load(self, context): ...", ""), "class Squares in function/handler.py lacks: load"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_live_but_not_ready_and_says_why(handler: str, reason: str) -> None:
    with loaded_app(handler) as (client, runtime):
        ready = client.get("/_/ready")
        refused = client.post("/", json=1)

        assert client.get("/_/health").status_code == 200
        assert (ready.status_code, ready.get_json()["state"]) == (503, "failed")
        assert re.search(reason, ready.get_json()["reason"])
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert refused.get_json()["error"]["retryable"] is True
        assert runtime.condition.weights_digest == ""


def test_files_of_a_form_reach_decode() -> None:
    handler = SQUARES.replace("number = request.json(float)", "number = float(request.files['n'].data)")
    with served(handler) as client:
        answer = client.post("/", data={"n": (io.BytesIO(b"5"), "n.txt")})

    assert answer.get_json() == {"square": 25}


def test_a_file_of_a_form_that_has_no_name_is_called_by_the_empty_one() -> None:
    handler = SQUARES.replace("number = request.json(float)", "number = float(request.files[''].data)")
    form = b'--x\r\nContent-Disposition: form-data; filename="n"\r\n\r\n6\r\n--x--'
    with served(handler) as client:
        answer = client.post("/", data=form, content_type="multipart/form-data; boundary=x")

    assert answer.get_json() == {"square": 36}


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"GSHARE_MAX_BATCH": "many"}, "GSHARE_MAX_BATCH='many': not a whole number"),
        ({"GSHARE_MAX_BATCH": "0"}, "max_batch=0: at least 1"),
        ({"GSHARE_MAX_BATCH_DELAY_MS": "-1"}, "max_batch_delay_ms=-1: 0 or more"),
        ({"GSHARE_MAX_INFLIGHT": "0"}, "GSHARE_MAX_INFLIGHT=0: at least 1"),
    ],
)
def test_settings_that_cannot_work_stop_a_replica_at_its_start(env: dict[str, str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        create_app(env, start=False)


def test_what_the_agent_writes_is_what_a_replica_reads() -> None:
    config = ReplicaConfig(function="f.ns", cpus="0,1", max_batch=4, slo_ms=69.5, drain_linger_s=1.5, gpu_mem=2**31)

    assert ReplicaConfig.from_env(config.to_env()) == config
