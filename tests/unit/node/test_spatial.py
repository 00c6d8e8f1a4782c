"""Who holds a replica to its part of a device."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from gateway_plugin.model import Device, Place, ReplicaSpec
from gateway_plugin.node.spatial import CpuSpace

CORES = tuple(sorted(os.sched_getaffinity(0)))
CPU = Device(id="cpu:0", kind="cpu", units=len(CORES), memory_bytes=1, cores=CORES)
SPEC = ReplicaSpec(
    id="f-1", function="f.openfaas-fn", revision="r", code_digest="d", slot=0, place=Place("cpu:0", (len(CORES) - 1,))
)
ASKS_FOR_ITS_CORES = """
import os, subprocess, sys, threading
go, early = threading.Event(), []
old = threading.Thread(target=lambda: (go.wait(), early.append(sorted(os.sched_getaffinity(0)))))
old.start()
input()
go.set()
old.join()
seen = [sorted(os.sched_getaffinity(0))]
thread = threading.Thread(target=lambda: seen.append(sorted(os.sched_getaffinity(0))))
thread.start()
thread.join()
child = subprocess.run([sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"],
                       capture_output=True, text=True, check=True)
print(early + seen, child.stdout.strip())
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """Says on which cores its threads and its children may run, once it is given a line."""
    command = [sys.executable, "-c", ASKS_FOR_ITS_CORES]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def test_a_replica_its_threads_and_its_children_run_on_the_cores_of_its_units(process: subprocess.Popen[str]) -> None:
    CpuSpace(CPU).own(SPEC, process.pid, degraded="")
    said, _ = process.communicate("go\n")

    mine = [CORES[-1]]
    assert said.strip() == f"{[mine, mine, mine]} {mine}", "an earlier thread, the main one, a later one; a child"


def test_a_replica_may_load_on_all_cores_of_its_device_and_no_others(process: subprocess.Popen[str]) -> None:
    first = Device(id="cpu:0", kind="cpu", units=1, memory_bytes=1, cores=CORES[:1])
    CpuSpace(first).admit(SPEC, process.pid, degraded="")
    said, _ = process.communicate("go\n")

    mine = [CORES[0]]
    assert said.strip() == f"{[mine, mine, mine]} {mine}"


def test_a_replica_on_cores_sees_no_gpu() -> None:
    assert CpuSpace(CPU).environment(SPEC) == {"CUDA_VISIBLE_DEVICES": ""}
    assert CpuSpace(CPU).degraded == ""


def test_a_core_that_is_not_there_is_an_error_and_not_a_replica_that_runs_anywhere(
    process: subprocess.Popen[str],
) -> None:
    gone = Device(id="cpu:0", kind="cpu", units=1, memory_bytes=1, cores=(1023,))
    with pytest.raises(OSError, match="Invalid argument"):
        CpuSpace(gone).own(msgspec.structs.replace(SPEC, place=Place("cpu:0", (0,))), process.pid, degraded="")
    process.communicate("go\n")


def test_a_process_that_has_already_ended_is_no_error() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    CpuSpace(CPU).own(SPEC, ended.pid, degraded="")
