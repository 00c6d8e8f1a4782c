"""Replicas of a GPU under MPS: what they start with, how they are let go, what a fault does. With the stand-in."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from gateway_plugin.errors import AgentRefused
from gateway_plugin.model import Device, Place, ReplicaSpec
from gateway_plugin.node.mps import PID_FILE, MpsDaemon
from gateway_plugin.node.mps_env import client_environment, gpu_environment
from gateway_plugin.node.mps_space import MpsSpace
from gateway_plugin.node.spaces import OFF, spaces_of
from gateway_plugin.node.spatial import CpuSpace
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Mps
from tests.mps_stand import client_of, commands_of, fake_daemon

GPU = Device(id="GPU-5e1f", kind="V100", units=40, memory_bytes=16 * 1024**3)
SPEC = ReplicaSpec(
    id="bert-1",
    function="bert.openfaas-fn",
    revision="r",
    code_digest="d",
    slot=0,
    sm_partition=24,
    place=Place(GPU.id, tuple(range(10))),
)
OTHER = msgspec.structs.replace(SPEC, id="vit-1")
THIRD = msgspec.structs.replace(SPEC, id="gnmt-1")
NEVER_S = 3600.0


@pytest.fixture
def daemon() -> Iterator[MpsDaemon]:
    with fake_daemon(GPU) as daemon:
        yield daemon


@contextmanager
def replica_of(space: MpsSpace, daemon: MpsDaemon, spec: ReplicaSpec) -> Iterator[int]:
    """A process that computes through the daemon and is owned as that replica; its pid."""
    with client_of(daemon) as client:
        space.own(spec, client.pid, degraded="")
        yield client.pid


async def nobody_to_clear(device: str, reason: str) -> None:
    pytest.fail(f"{device} must not be cleared: {reason}")


def test_a_replica_starts_with_its_partition_and_is_not_degraded(daemon: MpsDaemon) -> None:
    async def life() -> None:
        space = MpsSpace(daemon, required=True)
        await space.open()
        await space.ready()
        assert space.degraded == ""
        assert space.environment(SPEC) == client_environment(SPEC, GPU, pipes=daemon.pipes)
        await space.close()

    asyncio.run(life())


def test_without_mps_replicas_start_in_time_sharing_and_say_why(tmp_path: Path) -> None:
    async def life() -> None:
        daemon = MpsDaemon(GPU, pipes=tmp_path / "p", logs=tmp_path / "l", program="nvidia-cuda-mps-nowhere")
        space = MpsSpace(daemon, required=False)
        await space.open()
        await space.ready()
        assert f"pipe directory {tmp_path}/p" in space.degraded
        assert "install the driver's compute utilities" in space.degraded
        assert space.environment(SPEC) == gpu_environment(GPU)
        await space.close()

    asyncio.run(life())


def test_where_mps_is_required_and_missing_a_replica_is_refused_with_the_reason(tmp_path: Path) -> None:
    async def life() -> None:
        daemon = MpsDaemon(GPU, pipes=tmp_path / "p", logs=tmp_path / "l", program="nvidia-cuda-mps-nowhere")
        space = MpsSpace(daemon, required=True)
        await space.open()
        with pytest.raises(AgentRefused, match=r"pipe directory .*; install .*; GSHARE_MPS=required starts nothing"):
            await space.ready()

    asyncio.run(life())


def test_a_daemon_that_died_is_noticed_before_the_next_replica_starts(daemon: MpsDaemon) -> None:
    async def life() -> None:
        space = MpsSpace(daemon, required=False)
        await space.open()
        os.kill(int((daemon.pipes / PID_FILE).read_text()), signal.SIGKILL)
        await space.ready()
        assert "Cannot find MPS control daemon process" in space.degraded
        assert space.environment(SPEC) == gpu_environment(GPU)

    asyncio.run(life())


def test_a_daemon_that_died_comes_back_once_no_replica_of_it_is_left(
    daemon: MpsDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_plugin.node.mps_space.RETRY_S", 0.0)

    async def life() -> None:
        space = MpsSpace(daemon, required=False, look_s=0.01)
        await space.open()
        watching = asyncio.ensure_future(space.watch(nobody_to_clear))
        with replica_of(space, daemon, SPEC):
            os.kill(int((daemon.pipes / PID_FILE).read_text()), signal.SIGKILL)
            await space.ready()
            assert space.degraded
        space.release(SPEC.id, asked=True)
        while space.degraded:
            await asyncio.sleep(0)
        watching.cancel()
        await daemon.check()
        await space.close()

    asyncio.run(life())


def test_before_a_stop_the_work_of_that_replicas_client_is_ended_and_no_other(daemon: MpsDaemon) -> None:
    async def life() -> None:
        space = MpsSpace(daemon, required=True)
        await space.open()
        with replica_of(space, daemon, SPEC) as mine, replica_of(space, daemon, OTHER):
            (server,) = await daemon.servers()
            await space.before_stop(mine)
            ended = [line for line in commands_of(daemon) if line.startswith("terminate_client")]
            assert ended == [f"terminate_client {server} {mine}"]
        await space.close()

    asyncio.run(life())


def test_a_daemon_that_does_not_answer_does_not_hold_up_a_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def life(daemon: MpsDaemon) -> None:
        space = MpsSpace(daemon, required=True)
        await space.open()
        with replica_of(space, daemon, SPEC) as pid:
            monkeypatch.setenv("FAKE_MPS", "refuse")
            await space.before_stop(pid)
            monkeypatch.delenv("FAKE_MPS")
        await space.close()

    with fake_daemon(GPU) as daemon:
        asyncio.run(life(daemon))


def test_a_fault_stops_every_replica_before_the_daemon_is_new_and_names_who_did_it(daemon: MpsDaemon) -> None:
    async def life() -> None:
        space = MpsSpace(daemon, required=True, look_s=NEVER_S)
        await space.open()
        first = (daemon.pipes / PID_FILE).read_text()
        cleared: list[str] = []
        with replica_of(space, daemon, SPEC) as innocent, replica_of(space, daemon, OTHER) as culprit:

            async def clear(device: str, reason: str) -> None:
                assert (daemon.pipes / PID_FILE).read_text() == first, "no restart while replicas run"
                cleared.append(f"{device}: {reason}")
                os.kill(innocent, signal.SIGKILL)
                space.release(SPEC.id, asked=True)
                while await daemon.clients():
                    pass

            watching = asyncio.ensure_future(space.watch(clear))
            await space.look(clear)  # the clients are known
            assert cleared == []
            await daemon.command(f"fault {culprit}")
            os.kill(culprit, signal.SIGKILL)
            space.release(OTHER.id, asked=False)
            await space.ready()
        watching.cancel()
        assert (daemon.pipes / PID_FILE).read_text() != first
        assert space.degraded == ""
        assert space.last_fault is not None
        assert space.last_fault.culprit == "vit-1"
        (text,) = cleared
        assert text.startswith("GPU-5e1f: fault on GPU-5e1f: MPS server")
        assert text.endswith("caused by vit-1, which the MPS log names")
        await space.close()

    asyncio.run(life())


def test_replicas_that_die_together_with_their_daemon_get_a_new_one_and_are_not_degraded(daemon: MpsDaemon) -> None:
    async def life() -> None:
        space = MpsSpace(daemon, required=True, look_s=NEVER_S)
        await space.open()
        cleared: list[str] = []

        async def clear(device: str, reason: str) -> None:
            cleared.append(reason)

        with replica_of(space, daemon, SPEC), replica_of(space, daemon, OTHER), replica_of(space, daemon, THIRD):
            os.kill(int((daemon.pipes / PID_FILE).read_text()), signal.SIGKILL)
            with pytest.raises(AgentRefused):
                await space.ready()
            space.release(OTHER.id, asked=False)
            space.release(SPEC.id, asked=False)
            await space.look(clear)
        assert cleared == [
            "fault on GPU-5e1f: 2 replicas died within 2 s and the MPS daemon does not answer; "
            "probably caused by vit-1, the first to die"
        ]
        assert space.degraded == ""
        await space.ready()
        await space.close()

    asyncio.run(life())


def test_replicas_that_die_while_the_server_is_well_are_no_fault_of_the_device(daemon: MpsDaemon) -> None:
    async def life() -> None:
        space = MpsSpace(daemon, required=True, look_s=NEVER_S)
        await space.open()
        with replica_of(space, daemon, SPEC), replica_of(space, daemon, OTHER):
            space.release(SPEC.id, asked=False)
            space.release(OTHER.id, asked=False)
            await space.look(nobody_to_clear)
        await space.close()

    asyncio.run(life())


def test_a_start_on_a_device_in_fault_waits_for_its_recovery_or_is_refused_for_now(
    daemon: MpsDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_plugin.node.mps_space.RECOVERY_S", 0.01)

    async def life() -> None:
        space = MpsSpace(daemon, required=False, look_s=NEVER_S)
        await space.open()
        with replica_of(space, daemon, SPEC) as pid:
            await daemon.command(f"fault {pid}")
            with pytest.raises(AgentRefused, match="GPU-5e1f recovers from a fault; it is tried again"):
                await space.ready()
        await space.close()

    asyncio.run(life())


def test_each_device_gets_the_owner_that_the_setting_asks_for(tmp_path: Path) -> None:
    cpu = Device(id="cpu:0", kind="cpu", units=1, memory_bytes=1, cores=(0,))
    auto = spaces_of([cpu, GPU], mps=Mps.AUTO, paths=Paths(tmp_path))
    assert isinstance(auto["cpu:0"], CpuSpace)
    assert isinstance(auto[GPU.id], MpsSpace)
    off = spaces_of([GPU], mps=Mps.OFF, paths=Paths(tmp_path))[GPU.id]
    assert (off.degraded, off.environment(SPEC)) == (OFF, gpu_environment(GPU))
