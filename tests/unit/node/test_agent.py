"""The node agent as a process, asked over its admin socket as the loop does."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from gshare.wire import Channel, Hello, LiveConfig, Refused, ToReplica, WireError, connect

from gateway_plugin.backends.process import ProcessBackend
from gateway_plugin.errors import AgentRefused, AgentUnavailable
from gateway_plugin.model import Place, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.node.replica import RECORD, ReplicaRecord
from gateway_plugin.paths import Paths
from gateway_plugin.processes import python_command
from gateway_plugin.settings import Settings
from tests.unix_http import call

PATIENCE_S = 60.0
HANDLER = "def handle(event, context):\n    return 'ok'\n"
SPEC = ReplicaSpec(id="f-1", function="f.openfaas-fn", revision="r", code_digest="good", slot=0)


class Node:
    """An agent process in a folder of its own, and the loop's door to it."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.from_env({"GSHARE_HOME": str(folder), "GSHARE_DEVICES": ""})
        self.paths = Paths(self.settings.home)
        self.paths.create()
        for digest, handler in (("good", HANDLER), ("bad", "raise RuntimeError('broken on purpose')\n")):
            package = self.paths.code / digest / "function"
            package.mkdir(parents=True)
            (package / "__init__.py").touch()
            (package / "handler.py").write_text(handler)
        self._changed = threading.Condition()
        self.backend = ProcessBackend(self.paths.agent_socket)
        self.begin()
        self.backend.watch(self._notify)

    def begin(self) -> None:
        environment = os.environ | self.settings.to_env()
        with (self.paths.logs / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(python_command("process", "agent"), env=environment, stdout=log, stderr=log)
        self.wait(lambda: self.backend.replicas() is not None)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def status(self, replica: str = "f-1") -> ReplicaStatus | None:
        return next((one for one in self.backend.replicas() if one.spec.id == replica), None)

    def wait(self, condition: Callable[[], object]) -> None:
        """Until the condition holds; looked at whenever the agent tells of a change, and now and then."""

        def holds() -> object:
            try:
                return condition()
            except AgentUnavailable:
                return False

        with self._changed:
            for _ in range(int(PATIENCE_S / 0.05)):
                if holds():
                    return
                self._changed.wait(0.05)
        pytest.fail("it did not come to that; the agent's log:\n" + (self.paths.logs / "agent.log").read_text())

    def wait_state(self, state: ReplicaState, replica: str = "f-1") -> ReplicaStatus:
        self.wait(lambda: (status := self.status(replica)) is not None and status.state is state)
        status = self.status(replica)
        assert status is not None
        return status

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        self.backend.close()
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def node() -> Iterator[Node]:
    folder = Path(tempfile.mkdtemp(prefix="gshare-node-"))
    node = Node(folder)
    yield node
    node.close()
    shutil.rmtree(folder)


def test_a_replica_is_started_serves_is_configured_and_stopped(node: Node) -> None:
    assert node.backend.devices()
    node.backend.start(SPEC, fence=1)
    status = node.wait_state(ReplicaState.READY)
    assert call(node.paths.replica_http("f-1"), "/", b"x").status == 200
    assert os.getpriority(os.PRIO_PROCESS, status.pid) == 10

    node.backend.configure("f-1", LiveConfig(slo_ms=42.0), fence=1, version=2)
    node.wait(lambda: (one := node.status()) is not None and one.acked_version == 2)

    node.backend.stop("f-1", fence=1, grace_s=30.0)
    node.wait(lambda: node.status() is None)
    assert not node.paths.replica("f-1").exists()
    assert not Path(f"/proc/{status.pid}").exists()


def test_a_replica_on_cores_runs_on_those_alone_with_its_worker(node: Node) -> None:
    (device,) = node.backend.devices()
    last = len(device.cores) - 1
    node.backend.start(msgspec.structs.replace(SPEC, place=Place(device.id, (last,))), fence=1)
    status = node.wait_state(ReplicaState.READY)
    assert status.degraded == ""
    (worker,) = Path(f"/proc/{status.pid}/task/{status.pid}/children").read_text().split()
    assert os.sched_getaffinity(status.pid) == os.sched_getaffinity(int(worker)) == {device.cores[last]}


def test_a_replica_that_cannot_load_is_failed_with_its_reason_and_can_be_stopped(node: Node) -> None:
    node.backend.start(msgspec.structs.replace(SPEC, code_digest="bad"), fence=1)
    assert "broken on purpose" in node.wait_state(ReplicaState.FAILED).reason
    node.backend.stop("f-1", fence=1, grace_s=30.0)
    node.wait(lambda: node.status() is None)


def test_a_killed_replica_is_reported_with_its_signal_until_it_is_stopped(node: Node) -> None:
    node.backend.start(SPEC, fence=1)
    os.kill(node.wait_state(ReplicaState.READY).pid, signal.SIGKILL)
    dead = node.wait_state(ReplicaState.FAILED)
    assert (dead.reason, dead.exit_code, dead.pid) == ("its process ended with signal 9", -9, 0)
    node.backend.stop("f-1", fence=1, grace_s=30.0)
    node.wait(lambda: node.status() is None)


def test_the_next_agent_adopts_living_replicas_and_reports_dead_ones(node: Node) -> None:
    node.backend.start(SPEC, fence=1)
    node.backend.start(msgspec.structs.replace(SPEC, id="f-2", slot=1), fence=1)
    before = node.wait_state(ReplicaState.READY)
    doomed = node.wait_state(ReplicaState.READY, "f-2")
    node.kill()
    assert call(node.paths.replica_http("f-1"), "/", b"x").status == 200, "replicas serve on without an agent"
    os.kill(doomed.pid, signal.SIGKILL)
    node.begin()
    assert node.wait_state(ReplicaState.READY).pid == before.pid
    node.wait_state(ReplicaState.FAILED, "f-2")
    node.backend.configure("f-1", LiveConfig(slo_ms=7.0), fence=2, version=2)
    node.wait(lambda: (one := node.status()) is not None and one.acked_version == 2)


def test_the_next_agent_goes_on_stopping_what_its_predecessor_was_stopping(node: Node) -> None:
    node.backend.start(SPEC, fence=1)
    node.wait_state(ReplicaState.READY)
    node.kill()
    path = node.paths.replica("f-1") / RECORD
    record = msgspec.json.decode(path.read_bytes(), type=ReplicaRecord)
    draining = msgspec.structs.replace(record.status, state=ReplicaState.DRAINING)
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, status=draining)))
    node.begin()
    node.wait(lambda: node.status() is None)
    assert not record.process.alive()


def test_sigterm_to_the_agent_stops_its_replicas(node: Node) -> None:
    node.backend.start(SPEC, fence=1)
    pid = node.wait_state(ReplicaState.READY).pid
    node.close()
    assert not Path(f"/proc/{pid}").exists()
    assert list(node.paths.replicas.iterdir()) == []


def replica_processes(node: Node) -> list[int]:
    """Processes that were started as a replica of this node."""
    mark = f"GSHARE_NODE_SOCKET={node.paths.replicas}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found


def test_with_the_run_folder_removed_sigterm_still_stops_the_replicas(node: Node) -> None:
    node.backend.start(SPEC, fence=1)
    node.wait_state(ReplicaState.READY)
    shutil.rmtree(node.paths.run)
    node.close()
    assert node.process.returncode == 0
    assert replica_processes(node) == []


def test_a_replica_that_cannot_be_written_down_is_not_left_running(node: Node) -> None:
    (node.paths.replica("f-1") / "record.json").mkdir(parents=True)
    with pytest.raises(AgentRefused, match=r"f-1 cannot be started: .*record.json"):
        node.backend.start(SPEC, fence=1)
    assert replica_processes(node) == []
    node.backend.start(SPEC, fence=1)
    node.wait_state(ReplicaState.READY)


def test_a_function_whose_code_is_gone_is_refused_and_not_replaced_by_the_starter(node: Node) -> None:
    with pytest.raises(AgentRefused, match=r"its code is gone: no .*/gone/function/handler.py; deploy"):
        node.backend.start(msgspec.structs.replace(SPEC, code_digest="gone"), fence=1)
    assert node.status() is None


def test_only_the_holder_of_the_credential_is_welcome_on_a_replicas_socket(node: Node) -> None:
    node.backend.start(SPEC, fence=1)
    node.wait_state(ReplicaState.READY)
    thief: Channel[ToReplica] = connect(str(node.paths.replica_node("f-1")), ToReplica, timeout_s=PATIENCE_S)
    thief.send(Hello(credential="guess", replica="f-1", pid=1))
    assert thief.receive() == Refused("wrong credential")
    thief.close()
    assert node.wait_state(ReplicaState.READY)


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{}", b"GET / HTTP/1.1\r\n\r\n", b"\x00"])
def test_garbage_on_its_sockets_harms_neither_agent_nor_replica(node: Node, garbage: bytes) -> None:
    node.backend.start(SPEC, fence=1)
    node.wait_state(ReplicaState.READY)
    for path in (node.paths.agent_socket, node.paths.replica_node("f-1")):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(path))
            stranger.sendall(garbage)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) == b""
    assert node.wait_state(ReplicaState.READY).acked_version == 1


def test_a_loop_that_was_overtaken_cannot_change_anything(node: Node) -> None:
    node.backend.start(SPEC, fence=5)
    with pytest.raises(AgentRefused, match="fencing number 4 is older than 5"):
        node.backend.stop("f-1", fence=4, grace_s=1.0)


def test_what_cannot_be_started_is_refused_with_the_reason(node: Node) -> None:
    with pytest.raises(AgentRefused, match="no device GPU-x here"):
        node.backend.start(msgspec.structs.replace(SPEC, place=Place("GPU-x", (0,))), fence=1)
    assert node.status() is None
    node.backend.start(SPEC, fence=1)
    with pytest.raises(AgentRefused, match="exists already"):
        node.backend.start(SPEC, fence=1)
    with pytest.raises(AgentRefused, match="no replica nope"):
        node.backend.configure("nope", LiveConfig(), fence=1, version=2)


def test_an_agent_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable, match="node agent"):
        ProcessBackend(tmp_path / "none.sock").replicas()


def test_a_request_that_is_none_ends_the_connection(node: Node) -> None:
    channel: Channel[ToReplica] = connect(str(node.paths.agent_socket), ToReplica, timeout_s=PATIENCE_S)
    channel.send(Hello(credential="", replica="", pid=0))
    with pytest.raises(WireError, match="closed"):
        channel.receive()
    channel.close()
    assert node.backend.replicas() == ()
