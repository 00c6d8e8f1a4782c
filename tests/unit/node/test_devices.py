"""Devices of a machine, by NVML or by its cores."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from gateway_plugin.errors import SettingsError
from gateway_plugin.node.devices import discover, machine_cores, machine_memory_bytes, sm_count

GIB = 1024**3


@dataclass
class Gpu:
    uuid: str
    name: str
    cores: int
    capability: tuple[int, int]
    memory_bytes: int = 16 * GIB
    mig: int | None = None


@dataclass
class FakeNvml:
    """A machine with these GPUs, answering as pynvml does."""

    gpus: list[Gpu] = field(default_factory=list)

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Gpu:
        return self.gpus[index]

    def nvmlDeviceGetUUID(self, handle: Gpu, /) -> str:
        return handle.uuid

    def nvmlDeviceGetName(self, handle: Gpu, /) -> str:
        return handle.name

    def nvmlDeviceGetMemoryInfo(self, handle: Gpu, /) -> Any:
        return SimpleNamespace(total=handle.memory_bytes)

    def nvmlDeviceGetNumGpuCores(self, handle: Gpu, /) -> int:
        return handle.cores

    def nvmlDeviceGetCudaComputeCapability(self, handle: Gpu, /) -> tuple[int, int]:
        return handle.capability

    def nvmlDeviceGetMigMode(self, handle: Gpu, /) -> tuple[int, int]:
        if handle.mig is None:
            raise RuntimeError("Not Supported")
        return handle.mig, handle.mig


V100 = Gpu("GPU-v", "Tesla V100-SXM2-16GB", 5120, (7, 0))
H200 = Gpu("GPU-h", "NVIDIA H200", 16896, (9, 0), 141 * GIB, mig=0)


def test_gpus_are_counted_in_sm_pairs_and_named_by_uuid() -> None:
    found = discover("", nvml=FakeNvml([V100, H200]), cores=(0, 1), memory_bytes=GIB)
    assert [(one.id, one.kind, one.units, one.memory_bytes) for one in found] == [
        ("GPU-v", "Tesla V100-SXM2-16GB", 40, 16 * GIB),
        ("GPU-h", "NVIDIA H200", 66, 141 * GIB),
    ]


def test_a_gpu_in_mig_mode_without_instances_of_ours_is_no_device() -> None:
    sliced = Gpu("GPU-m", "NVIDIA A100", 6912, (8, 0), mig=1)
    found = discover("", nvml=FakeNvml([sliced, V100]), cores=(0,), memory_bytes=GIB)
    assert [one.id for one in found] == ["GPU-v"]


def test_without_a_gpu_the_cores_are_the_device() -> None:
    for nvml in (None, FakeNvml()):
        (cpu,) = discover("", nvml=nvml, cores=(0, 2, 5), memory_bytes=8 * GIB)
        assert (cpu.id, cpu.kind, cpu.units, cpu.cores, cpu.memory_bytes) == ("cpu:0", "cpu", 3, (0, 2, 5), 8 * GIB)


def test_a_machine_can_be_split_into_devices_with_their_part_of_the_memory() -> None:
    first, second = discover("cpu:0-1, cpu:2-3", nvml=None, cores=(0, 1, 2, 3), memory_bytes=8 * GIB)
    assert (first.id, first.cores, first.memory_bytes) == ("cpu:0", (0, 1), 4 * GIB)
    assert (second.id, second.cores, second.memory_bytes) == ("cpu:1", (2, 3), 4 * GIB)


def test_a_gpu_can_be_picked_by_its_uuid() -> None:
    (found,) = discover("GPU-h", nvml=FakeNvml([V100, H200]), cores=(0,), memory_bytes=GIB)
    assert found.id == "GPU-h"


@pytest.mark.parametrize("wanted", ["GPU-x", "cpu:4-5", "0", "cpu", "cpu:0-0,,"])
def test_what_is_no_device_here_is_refused_with_what_there_is(wanted: str) -> None:
    with pytest.raises(SettingsError, match=r"GSHARE_DEVICES.*GPU-v.*cores among 0"):
        discover(wanted, nvml=FakeNvml([V100]), cores=(0,), memory_bytes=GIB)


@pytest.mark.parametrize(
    ("cores", "capability", "sms"), [(5120, (7, 0), 80), (6912, (8, 0), 108), (10752, (8, 6), 84), (16896, (9, 0), 132)]
)
def test_sms_follow_from_cuda_cores_by_architecture(cores: int, capability: tuple[int, int], sms: int) -> None:
    assert sm_count(cores, capability) == sms


def test_this_machine_has_cores_and_memory() -> None:
    assert machine_cores()
    assert machine_memory_bytes() > 64 * 1024**2
