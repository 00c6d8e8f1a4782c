"""A replica as a process: what its clients, its agent and its orchestrator see from start to end."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gshare.wire import Ack, Hello, LiveConfig, State

from tests.agent_stand import AgentStand, agent_stand
from tests.replica_process import FAILED_LINE, ReplicaProcess, replica
from tests.unix_http import UnixConnection

THREADS = 4
PLAIN = """
import hashlib, os

def handle(event, context):
    if event.path == "/pid":
        return str(os.getpid())
    if event.path.startswith("//"):
        return event.path
    if event.path == "/die":
        os.kill(os.getpid(), 9)
    if event.path == "/gate":
        os.write(1, b"at the gate: %s\\n" % event.body)
        open(os.environ["GATE"]).read()
    return hashlib.sha256(event.body).hexdigest()
"""
MODEL = """
import os
import torch
from gshare.handler import Handler

class Scale(Handler):
    def load(self, context):
        open(os.environ["GATE"]).read()
        self.model = context.build(lambda: torch.nn.Linear(1, 1))

    def example(self):
        return torch.zeros(1)

    def decode(self, request):
        return torch.tensor(request.json(list[float]))

    def forward(self, items):
        return self.model(torch.stack(items))
"""


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A pipe: who reads it waits until the test has opened and closed it for writing."""
    path = tmp_path / "gate"
    os.mkfifo(path)
    return path


def open_gate(gate: Path) -> None:
    gate.open("w").close()


def test_a_model_is_live_while_it_loads_and_ready_only_after_its_warm_up(gate: Path) -> None:
    with agent_stand() as agent, replica(MODEL, env={"GATE": str(gate), "GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        agent.wait_for(State, lambda state: state.reason == "loading the model")
        assert it.call("/_/health").status == 200
        loading = it.call("/_/ready")
        refused = it.call("/", "[1]")
        open_gate(gate)
        ready = agent.wait_for(State, lambda state: state.state == "ready")

        assert (loading.status, loading.json()["state"]) == (503, "loading")
        assert (refused.status, refused.json()["error"]["code"]) == (503, "not_ready")
        assert ready.warmup_ms > 0
        assert ready.weights == "random:0"
        assert ready.weights_digest.startswith("sha256:")
        assert it.call("/_/ready").status == 200
        answer = it.call("/", "[1]")
        assert (answer.status, answer.header("X-Gshare-Weights")) == (200, "random:0")


def test_a_failed_load_shows_its_reason_and_leaves_the_process_alive() -> None:
    handler = "LABELS = open('gone.txt')"

    with agent_stand() as agent, replica(handler, env={"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        failed = agent.wait_for(State, lambda state: state.state == "failed")

        assert "FileNotFoundError" in failed.reason
        assert failed.reason.endswith("'gone.txt' (function/handler.py, line 1)")
        assert it.call("/_/ready").json() == {"state": "failed", "reason": failed.reason}
        assert it.call("/_/health").status == 200
        assert it.call("/", "[1]").status == 503
        assert it.process.poll() is None


def test_the_helper_fails_at_once_and_shows_the_log_when_loading_fails() -> None:
    with replica("import nonsense_that_is_not_there") as it, pytest.raises(AssertionError, match="No module named"):
        it.wait_ready()


def test_a_replica_introduces_itself_and_the_connection_belongs_to_the_serving_process() -> None:
    env = {"GSHARE_REPLICA": "r-1", "GSHARE_CREDENTIAL": "secret"}
    with agent_stand() as agent, replica(PLAIN, env=env | {"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        hello = agent.wait_for(Hello)
        it.wait_ready()

        assert (hello.replica, hello.credential) == ("r-1", "secret")
        assert hello.pid == it.status()["pid"] != it.process.pid
        os.kill(hello.pid, signal.SIGKILL)
        agent.wait_disconnected()


def test_new_live_settings_are_acknowledged_by_the_same_process_without_a_restart() -> None:
    with agent_stand() as agent, replica(PLAIN, env={"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        it.wait_ready()
        before = it.status()
        version = agent.configure(LiveConfig(slo_ms=69, max_batch=8, memory_bytes=10**9))
        ack = agent.wait_for(Ack)
        after = it.status()

        assert (ack.version, ack.error) == (version, "")
        assert after["pid"] == before["pid"]
        assert (after["live"]["slo_ms"], after["live"]["max_batch"]) == (69, 8)
        assert after["live"]["memory_bytes"] == 10**9
        assert (after["live_version"], after["managed"]) == (version, "yes")


def test_settings_that_cannot_work_are_refused_and_the_old_ones_stay() -> None:
    with agent_stand() as agent, replica(PLAIN, env={"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        it.wait_ready()
        agent.configure(LiveConfig(max_batch=0))

        assert agent.wait_for(Ack).error == "max_batch=0: at least 1"
        assert it.status()["live"]["max_batch"] == 1


def test_a_replica_serves_on_without_its_agent_and_tells_a_new_one_everything_again() -> None:
    with agent_stand() as agent, replica(PLAIN, env={"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        agent.wait_for(State, lambda state: state.state == "ready")
        agent.close()
        it.wait_for_log("no node agent")
        alone = it.call("/", "x")
        status = it.status()
        successor = AgentStand(agent.path, live=LiveConfig(slo_ms=100))
        try:
            hello = successor.wait_for(Hello)
            successor.wait_for(State, lambda state: state.state == "ready")
            live = it.status()["live"]
        finally:
            successor.close()

        assert alone.status == 200
        assert status["managed"] == "degraded"
        assert hello.pid == status["pid"]
        assert live["slo_ms"] == 100


def test_a_refused_replica_serves_degraded_and_says_why() -> None:
    with agent_stand(refuse="no") as agent, replica(PLAIN, env={"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        it.wait_ready()
        status = it.status()

    assert (status["managed"], status["managed_reason"]) == ("degraded", "refused: no")


def test_an_agent_that_is_not_there_is_waited_for_and_then_done_without(tmp_path: Path) -> None:
    env = {"GSHARE_NODE_SOCKET": str(tmp_path / "none.sock"), "GSHARE_NODE_WAIT_S": "0.2"}
    with replica(PLAIN, env=env) as it:
        it.wait_ready()

        assert "no node agent within 0.2 s; serving without it" in it.log
        assert it.status()["managed"] == "degraded"
        assert b"gshare_managed" in it.call("/metrics").body


def test_without_a_node_socket_a_replica_is_unmanaged_and_says_so_once() -> None:
    with replica(PLAIN) as it:
        it.wait_ready()
        metrics = it.call("/metrics").body.decode()

        assert it.log.count("unmanaged") == 1
        assert it.status()["managed"] == "no"
        assert 'gshare_managed{function_name="tested.openfaas-fn"} 0.0' in metrics
        assert 'gshare_ready{function_name="tested.openfaas-fn"} 1.0' in metrics


def test_a_chunked_body_arrives_whole() -> None:
    chunks = [bytes([n]) * (n + 1) for n in range(256)]
    with replica(PLAIN) as it:
        it.wait_ready()
        whole = it.call("/", b"".join(chunks))
        chunked = it.call("/", iter(chunks))

    assert whole.body == chunked.body


def test_a_refusal_that_waits_for_no_body_reaches_a_client_that_is_still_sending_it() -> None:
    with replica(PLAIN) as it:
        it.wait_ready()
        client = it.connect()
        client.request("PUT", "/_/ready", bytes(10_000_000))
        refused = finish(client)

    assert refused == 405


def test_a_path_keeps_its_slashes_on_the_way_through_the_server() -> None:
    with replica(PLAIN) as it:
        it.wait_ready()

        assert it.call("//a%2Fb//%E2%9C%93/?x=1").body.decode() == "//a/b//✓/"


def test_every_request_that_was_sent_before_sigterm_is_answered_and_the_process_ends_with_0(gate: Path) -> None:
    with agent_stand() as agent, ThreadPoolExecutor(THREADS) as pool:
        env = {"GATE": str(gate), "GSHARE_MAX_INFLIGHT": str(THREADS), "GSHARE_MAX_QUEUED": "12"}
        with replica(PLAIN, env=env | {"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
            it.wait_ready()
            held = [pool.submit(it.call, "/gate", f"request {n}") for n in range(THREADS)]
            for n in range(THREADS):
                it.wait_for_log(f"at the gate: request {n}")
            queued = [send(it, f"queued {n}") for n in range(12)]
            it.terminate()
            agent.wait_for(State, lambda state: state.state == "draining")
            open_gate(gate)
            statuses = {request.result().status for request in held} | {finish(request) for request in queued}
            code = it.wait()

    assert statuses == {200}
    assert code == 0


def test_a_draining_replica_is_not_ready_and_closes_kept_connections_after_an_answer(gate: Path) -> None:
    with replica(PLAIN, env={"GATE": str(gate)}) as it, ThreadPoolExecutor(1) as pool:
        it.wait_ready()
        kept = it.connect()
        before = kept.call("/_/ready")
        held = pool.submit(it.call, "/gate", "request 0")
        it.wait_for_log("at the gate")
        it.terminate()
        it.wait_for_log("draining")
        after = kept.call("/_/ready")
        kept.close()
        open_gate(gate)
        held.result()

    assert (before.status, before.header("Connection")) == (200, "keep-alive")
    assert (after.status, after.json()["state"], after.header("Connection")) == (503, "draining", "close")


def test_keep_alive_clients_that_send_all_the_time_lose_nothing_to_sigterm() -> None:
    with replica(PLAIN) as it, ThreadPoolExecutor(8) as pool:
        it.wait_ready()
        clients = [pool.submit(send_until_closed, it) for _ in range(8)]
        it.call("/", "x")
        it.terminate()
        answered = [client.result(timeout=60) for client in clients]
        code = it.wait()

    assert all(count > 0 for count in answered)
    assert code == 0


def test_a_replica_whose_serving_process_dies_ends_with_an_error() -> None:
    with replica(PLAIN) as it:
        it.wait_ready()
        with pytest.raises(OSError):
            it.call("/die", "x")

        assert it.wait() == 1


def test_a_replica_whose_parent_is_killed_ends_and_its_agent_sees_it() -> None:
    with agent_stand() as agent, replica(PLAIN, env={"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        it.wait_ready()
        it.process.send_signal(signal.SIGKILL)

        agent.wait_disconnected()


def test_a_request_that_never_ends_does_not_keep_a_replica_alive_beyond_its_drain_time(gate: Path) -> None:
    with replica(PLAIN, env={"GATE": str(gate), "GSHARE_DRAIN_TIMEOUT_S": "1"}) as it:
        it.wait_ready()
        with ThreadPoolExecutor(1) as pool:
            stuck = pool.submit(it.call, "/gate", "x")
            it.wait_for_log("at the gate")
            it.terminate()
            it.wait()
            assert isinstance(stuck.exception(timeout=60), OSError)


def test_preload_is_refused_before_anything_is_loaded() -> None:
    with replica(PLAIN, env={"GUNICORN_CMD_ARGS": "--preload"}) as it:
        assert it.wait() != 0
        it.wait_for_log("preload is on")
        assert FAILED_LINE not in it.log


def send(it: ReplicaProcess, body: str) -> UnixConnection:
    """A request that is on its way, its answer not read."""
    connection = it.connect()
    connection.request("POST", "/", body)
    return connection


def finish(connection: UnixConnection) -> int:
    """Read the answer to `send`; its status."""
    response = connection.getresponse()
    response.read()
    connection.close()
    return response.status


def send_until_closed(it: ReplicaProcess) -> int:
    """Requests on one kept connection until the replica says `Connection: close`; any other end is an error."""
    connection = it.connect()
    count = 0
    while True:
        answer = connection.call("/", b"x" * 1000)
        assert answer.status == 200
        count += 1
        if answer.header("Connection") == "close":
            connection.close()
            return count
