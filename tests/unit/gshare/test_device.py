from __future__ import annotations

import mmap
import os
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest
import torch
from gshare.config import ReplicaConfig
from gshare.device import core_count, open_device, plain_device, resident_bytes
from gshare.errors import ConfigError

HELD_BYTES = 64 * 1024**2
CORES = os.sched_getaffinity(0)


def test_the_cores_given_are_the_threads_of_the_thread_that_computes() -> None:
    seen: list[int] = []

    def device_thread() -> None:
        device = open_device(ReplicaConfig(device="cpu:0", cpus="0"))
        seen.extend((device.threads, torch.get_num_threads(), torch.get_num_interop_threads()))

    thread = threading.Thread(target=device_thread)
    thread.start()
    thread.join()

    assert seen == [1, 1, 1]


def test_without_cores_given_all_that_the_process_may_use_are_taken() -> None:
    assert core_count("") == len(os.sched_getaffinity(0))
    assert core_count("3,1,3") == 2


def test_cores_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match="GSHARE_CPUS='0-3'"):
        core_count("0-3")


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_torch_cannot_use_is_refused_instead_of_computing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")

    with pytest.raises(ConfigError, match=r"GSHARE_DEVICE='GPU-1'.*sees no such GPU"):
        open_device(ReplicaConfig(device="GPU-1"))


@pytest.fixture
def fractions(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, int]]:
    """A GPU of 16 GiB as far as torch tells, and the memory fractions that torch is given, with their device."""
    given: list[tuple[float, int]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "V100")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=16 * 1024**3))
    monkeypatch.setattr(torch.cuda, "set_per_process_memory_fraction", lambda *given_now: given.append(given_now))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-1")
    return given


def test_on_a_gpu_torch_itself_is_held_to_the_memory_share(fractions: list[tuple[float, int]]) -> None:
    device = open_device(ReplicaConfig(device="GPU-1", gpu_mem=4 * 1024**3))

    assert fractions == [(0.25, 0)]
    assert (device.kind, device.torch_name) == ("V100", "cuda:0")


def test_a_memory_share_above_what_the_gpu_shows_is_all_of_it(fractions: list[tuple[float, int]]) -> None:
    open_device(ReplicaConfig(device="GPU-1", gpu_mem=17 * 1024**3))

    assert fractions == [(1.0, 0)]


def test_without_a_memory_share_torch_is_not_limited(fractions: list[tuple[float, int]]) -> None:
    open_device(ReplicaConfig(device="GPU-1"))

    assert fractions == []


def test_memory_on_a_cpu_is_what_is_resident() -> None:
    device = open_device(ReplicaConfig(device="cpu:0"))
    before = device.memory_bytes()
    with mmap.mmap(-1, HELD_BYTES) as held:  # fresh pages, whatever the allocator has to spare
        held.write(b"x" * HELD_BYTES)
        grown = device.memory_bytes() - before

    assert grown >= HELD_BYTES * 0.9
    assert not device.is_cuda
    assert resident_bytes() > 0


def test_a_plain_function_has_no_device_and_needs_no_torch() -> None:
    assert plain_device(ReplicaConfig(cpus="0,1")).threads == 2


def test_from_its_first_pass_on_every_thread_keeps_to_the_cores_it_was_given() -> None:
    program = (
        "import os, threading\n"
        "from gshare.device import settle\n"
        "go, seen = threading.Event(), []\n"
        "thread = threading.Thread(target=lambda: (go.wait(), seen.append(os.sched_getaffinity(0))))\n"
        "thread.start()\n"
        "settle(''); before = os.sched_getaffinity(0)\n"
        f"settle('{max(CORES)}'); go.set(); thread.join()\n"
        "print([sorted(before), sorted(os.sched_getaffinity(0)), sorted(seen[0])])"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert said.strip() == str([sorted(CORES), [max(CORES)], [max(CORES)]])
