"""B15 (nvidia-container-toolkit#277, sglang-omni PR 1635): a client is let go before its process ends."""

from __future__ import annotations

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from gateway_plugin.model import ReplicaState
from tests.gpu_node import GpuNode, gpu_node, spec_on
from tests.mps_stand import commands_of
from tests.unix_http import call

GPU = "GPU-a1"


def client_pid(node: GpuNode, replica: str) -> int:
    """The serving process of a replica, which is the one that computes."""
    pid = node.status(replica).pid
    (worker,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(worker)


def answer(node: GpuNode, replica: str, path: str = "/", body: bytes | None = None) -> int:
    return call(node.paths.replica_http(replica), path, body).status


def test_first_the_daemon_lets_go_of_the_client_then_sigterm_then_sigkill(tmp_path: Path) -> None:
    fifo = tmp_path / "never-written"
    os.mkfifo(fifo)
    with gpu_node(GSHARE_DEVICES=GPU) as node, ThreadPoolExecutor(1) as pool:
        node.start(spec_on(GPU, "f-1"))
        node.start(spec_on(GPU, "f-2"))
        daemon, mine = node.daemon(GPU), client_pid(node, "f-1")
        (server,) = asyncio.run(daemon.servers())
        pool.submit(answer, node, "f-1", "/", str(fifo).encode())
        hold = daemon.pipes / "hold"
        hold.touch()

        node.stop("f-1", grace_s=0.2)
        terminate = f"terminate_client {server} {mine}"
        node.wait(lambda: terminate in commands_of(daemon))
        assert node.status("f-1").state is ReplicaState.DRAINING
        before_sigterm = answer(node, "f-1", "/_/ready")
        hold.unlink()
        node.wait(lambda: node.ids() == ["f-2"])
        assert "f-1: ended, exit code -9" in node.log(), "work that never ends is killed after the grace"

        node.wait(lambda: f"(client {mine} ended)" in commands_of(daemon))
        assert [answer(node, "f-2") for _ in range(20)] == [200] * 20
        commands = commands_of(daemon)

    assert before_sigterm == 200, "it was ready: no signal before the daemon had let go"
    assert commands.index(terminate) < commands.index(f"(client {mine} ended)")
    assert [command for command in commands if command.startswith("terminate_client")].index(terminate) == 0


def test_a_fault_stops_all_replicas_of_the_device_before_the_daemon_is_new_and_names_who_did_it() -> None:
    with gpu_node(GSHARE_DEVICES=f"{GPU},GPU-b2") as node:
        for device, replica in ((GPU, "good-1"), (GPU, "bad-1"), ("GPU-b2", "far-1")):
            node.start(spec_on(device, replica))
        daemon, culprit = node.daemon(GPU), client_pid(node, "bad-1")
        first, far_pid = min(daemon.pids()), node.status("far-1").pid
        asyncio.run(daemon.command(f"fault {culprit}"))
        os.kill(culprit, signal.SIGKILL)

        node.wait(lambda: node.ids() == ["bad-1", "far-1"])
        node.wait(lambda: daemon.exists() and min(daemon.pids(), default=first) != first)
        log = node.log()
        assert node.status("bad-1").state is ReplicaState.FAILED
        assert (node.status("far-1").state, node.status("far-1").pid) == (ReplicaState.READY, far_pid)
        assert node.start(spec_on(GPU, "next-1")).degraded == ""

    assert f"fault on {GPU}: MPS server" in log
    assert "caused by bad-1" in log
    stopped = log.index("good-1: stopped: fault on")
    assert stopped < log.index("good-1: ended")
