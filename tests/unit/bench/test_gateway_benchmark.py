"""The gateway benchmark against a small real server that plays gateway and replica."""

import json
import socketserver
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from click.testing import CliRunner

from bench.deployed import sample_of
from bench.figures import BenchError, Context
from bench.frame import bench
from bench.gateway import GatewayBenchmark
from bench.http_load import Call, Target, closed_loop
from gateway_plugin.model import FunctionRecord, FunctionSpec, FunctionStatus, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.openfaas.gshare_views import gshare_function_view
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings

BODY = b'{"question": "who?"}'


class Handler(BaseHTTPRequestHandler):
    """Echoes POSTs, answers health pages and /gshare/functions, fails at /broken; keeps what it was asked."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    functions: ClassVar[list[dict[str, Any]]] = []
    asked: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, body))
        self._answer(500 if self.path == "/broken" else 200, body)

    def do_GET(self) -> None:
        self.asked.append((self.path, b""))
        self._answer(200, json.dumps(self.functions).encode())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def address_string(self) -> str:
        return "test"

    def log_message(self, format: str, *args: Any) -> None: ...


class TcpServer(socketserver.ThreadingTCPServer):
    daemon_threads = True


class UnixServer(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64


@contextmanager
def serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Handler, "asked", [])
    monkeypatch.setattr(Handler, "functions", [])


@pytest.fixture
def home() -> Iterator[Path]:
    """Not under tmp_path, which can be too deep for a unix socket's name."""
    with tempfile.TemporaryDirectory(prefix="gs") as folder:
        yield Path(folder)


@pytest.fixture
def gateway() -> Iterator[int]:
    server = TcpServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield server.server_address[1]


def replica_folder(home: Path, replica: str) -> Path:
    paths = Paths(home)
    paths.create()
    paths.replica(replica).mkdir()
    return paths.replica_http(replica)


def context_for(tmp_path: Path, port: int, *, home: Path | None = None) -> Context:
    folder = tmp_path / "functions" / "echo"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sample.json").write_bytes(BODY)
    settings = Settings(home=home or tmp_path / "home", port=port, functions_path=(str(tmp_path / "functions"),))
    return Context(settings=settings, function="echo", runs=2, run_s=5.0, max_requests=16, say=lambda line: None)


def described(*states: str) -> list[dict[str, Any]]:
    """What `/gshare/functions` answers for `echo` with replicas in these states."""
    spec = FunctionSpec(service="echo", image="echo")
    record = FunctionRecord(spec=spec, replicas=1, revision="r", code_digest="d", created_at="2026-01-01T00:00:00Z")
    replicas = tuple(_replica(f"echo-{number}", state) for number, state in enumerate(states))
    status = FunctionStatus(name=record.name, ready=states.count("ready"), replicas=replicas)
    view: dict[str, Any] = msgspec.to_builtins(gshare_function_view(record, status, invocations=0, devices=[]))
    return [view]


def _replica(key: str, state: str) -> ReplicaStatus:
    spec = ReplicaSpec(id=key, function="echo.openfaas-fn", revision="r", code_digest="d", slot=0)
    return ReplicaStatus(spec=spec, state=ReplicaState(state))


def test_both_sides_get_the_sample_and_every_figure_comes_out(tmp_path: Path, gateway: int, home: Path) -> None:
    context = context_for(tmp_path, gateway, home=home)
    Handler.functions = described("ready", "draining")
    path = replica_folder(home, "echo-0")

    with serving(UnixServer(str(path), Handler)):
        figures = {figure.name: figure for figure in GatewayBenchmark().run(context)}

    assert {("/function/echo/", BODY), ("/", BODY)} <= set(Handler.asked)
    assert {("/function/echo/_/health", b""), ("/_/health", b"")} <= set(Handler.asked)
    assert {"health page, p50, added", "echo's sample, p99, ratio", "rate with 16 clients, ratio"} <= set(figures)
    assert all(figure.runs == 2 and figure.low <= figure.value <= figure.high for figure in figures.values())
    assert figures["health page, p50, added"].bound is not None


@pytest.mark.parametrize(
    ("functions", "reason"),
    [
        ([], "no function echo.openfaas-fn; deployed are: none"),
        (described("starting"), "echo has 0 ready replicas"),
        (described("ready", "ready"), "echo has 2 ready replicas"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_reason(
    tmp_path: Path, gateway: int, functions: list[dict[str, Any]], reason: str
) -> None:
    Handler.functions = functions

    with pytest.raises(BenchError, match=reason):
        GatewayBenchmark().run(context_for(tmp_path, gateway))


def test_without_a_gateway_it_says_how_to_start_one(tmp_path: Path) -> None:
    unused = TcpServer(("127.0.0.1", 0), Handler)
    unused.server_close()

    with pytest.raises(BenchError, match=r"no gateway at .*; start it with make up"):
        GatewayBenchmark().run(context_for(tmp_path, unused.server_address[1]))


def test_a_function_without_a_sample_is_refused_with_the_folders_looked_at(tmp_path: Path) -> None:
    context = context_for(tmp_path, 1)
    (tmp_path / "functions" / "echo" / "sample.json").unlink()

    with pytest.raises(BenchError, match="functions/echo"):
        sample_of(context, "echo")


def test_a_failed_request_ends_the_measurement_with_its_status(gateway: int) -> None:
    with pytest.raises(BenchError, match=r"/broken.*500 why"):
        closed_loop(Target(port=gateway), Call("POST", "/broken", b"why"), clients=2, max_requests=4, run_s=5.0)


def test_a_load_keeps_to_its_number_of_requests(gateway: int) -> None:
    measured = closed_loop(Target(port=gateway), Call("POST", "/", b"x"), clients=4, max_requests=20, run_s=60.0)

    assert len(measured.latencies_s) == len(Handler.asked) == 20
    assert measured.requests_per_s == pytest.approx(20 / measured.duration_s)


def test_a_load_keeps_to_its_time(gateway: int) -> None:
    measured = closed_loop(Target(port=gateway), Call("POST", "/", b"x"), clients=1, max_requests=10**9, run_s=0.05)

    assert 0 < len(measured.latencies_s) < 10**9


def test_the_command_lists_what_there_is_and_refuses_what_there_is_not() -> None:
    listed = CliRunner().invoke(bench, ["--list"])
    unknown = CliRunner().invoke(bench, ["throughput"])

    assert "gateway" in listed.output
    assert unknown.exit_code == 2
    assert "'throughput': no such benchmark; there are: gateway" in unknown.output


def test_the_command_prints_the_table_and_keeps_both_forms(
    tmp_path: Path, gateway: int, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context_for(tmp_path, gateway)
    Handler.functions = described("ready")
    path = replica_folder(home, "echo-0")
    monkeypatch.setenv("GSHARE_HOME", str(home))
    monkeypatch.setenv("GSHARE_PORT", str(gateway))
    monkeypatch.setenv("GSHARE_FUNCTIONS_PATH", str(tmp_path / "functions"))

    with serving(UnixServer(str(path), Handler)):
        result = CliRunner().invoke(
            bench,
            ["gateway", "--function", "echo", "--runs", "1", "--max-requests", "4", "--out", str(tmp_path / "out")],
        )

    assert result.exit_code == 0, result.output
    assert "| health page, p50, added |" in result.output
    assert (tmp_path / "out" / "gateway.md").read_text(encoding="utf-8") in result.output
    assert json.loads((tmp_path / "out" / "gateway.json").read_bytes())["benchmark"] == "gateway"
