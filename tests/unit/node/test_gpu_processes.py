"""Processes on a GPU that are no replica's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from gateway_plugin.node.gpu_processes import EVENT, GpuProcess, GpuProcessWatch, gpu_processes, unmanaged
from gateway_plugin.processes import ProcessId, identify
from tests.fake_nvml import GIB, H200, V100, FakeNvml


def on(device: str, pid: int, *, session: int) -> GpuProcess:
    return GpuProcess(device, ProcessId(pid, 1, "boot"), session, GIB)


def test_children_in_a_replicas_session_and_mps_servers_are_ours_and_the_rest_is_not() -> None:
    replica, worker, server = on("GPU-v", 10, session=10), on("GPU-v", 11, session=10), on("GPU-v", 20, session=19)
    notebook, escaped = on("GPU-h", 30, session=29), on("GPU-v", 12, session=12)

    assert unmanaged([escaped, notebook, server, worker, replica], frozenset({10, 19, 20})) == (notebook, escaped)


@pytest.fixture
def stranger() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process


def test_nvml_is_asked_by_uuid_and_what_is_not_in_this_namespace_is_left_out(
    stranger: subprocess.Popen[bytes],
) -> None:
    nvml = FakeNvml([H200, V100], pids={"GPU-v": [stranger.pid, 2**22 + 1]})
    handles = {one.uuid: nvml.nvmlDeviceGetHandleByUUID(one.uuid) for one in (V100, H200)}

    (found,) = gpu_processes(nvml, handles)

    assert (found.device, found.process, found.session) == ("GPU-v", identify(stranger.pid), stranger.pid)


def test_a_stranger_is_told_once_and_counted_while_it_is_there(
    stranger: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    nvml = FakeNvml([V100], pids={"GPU-v": [stranger.pid]})
    watch = GpuProcessWatch(nvml, ["GPU-v"], ours=frozenset)

    async def look_thrice() -> None:
        await watch.look()
        await watch.look()
        assert (watch.present, watch.seen_total) == (1, 1)
        nvml.pids.clear()
        await watch.look()
        assert (watch.present, watch.seen_total) == (0, 1)

    asyncio.run(look_thrice())
    (message,) = [record.getMessage() for record in caplog.records if EVENT in record.getMessage()]
    assert f"pid {stranger.pid} on GPU-v with 1024 MiB is no replica's" in message


def test_a_replica_is_never_told(stranger: subprocess.Popen[bytes], caplog: pytest.LogCaptureFixture) -> None:
    nvml = FakeNvml([V100], pids={"GPU-v": [stranger.pid]})
    watch = GpuProcessWatch(nvml, ["GPU-v"], ours=lambda: frozenset({os.getsid(stranger.pid)}))

    asyncio.run(watch.look())

    assert watch.seen_total == 0
    assert EVENT not in caplog.text
