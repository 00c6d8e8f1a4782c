"""Devices of a machine, by NVML or by its cores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway_plugin.errors import SettingsError
from gateway_plugin.node.devices import discover, machine_cores, machine_memory_bytes, sm_count
from tests.fake_nvml import GIB, H200, V100, FakeNvml, Gpu, Instance

MIB = 1024**2


def test_gpus_are_counted_in_sm_pairs_and_named_by_uuid() -> None:
    found = discover("", nvml=FakeNvml([V100, H200]), cores=(0, 1), memory_bytes=GIB)
    assert [(one.id, one.kind, one.units, one.memory_bytes) for one in found] == [
        ("GPU-v", "Tesla V100-SXM2-16GB", 40, 16 * GIB),
        ("GPU-h", "NVIDIA H200", 66, 141 * GIB),
    ]


SLICED = Gpu(
    "GPU-m",
    "NVIDIA A100-SXM4-40GB",
    6912,
    (8, 0),
    40 * GIB,
    mig=1,
    instances=(
        Instance("MIG-1", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, 4864 * MIB),
        None,
        Instance("MIG-2", "NVIDIA A100-SXM4-40GB", 28, 9856 * MIB, gpu_slices=2, compute_slices=2),
        Instance("MIG-3", "NVIDIA A100-SXM4-40GB", 14, 19968 * MIB, gpu_slices=3, compute_slices=1),
    ),
)


def test_each_mig_instance_is_a_device_with_its_profile_in_its_kind() -> None:
    found = discover("", nvml=FakeNvml([SLICED, V100]), cores=(0,), memory_bytes=GIB)
    assert [(one.id, one.kind, one.units, one.memory_bytes // MIB) for one in found] == [
        ("MIG-1", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 7, 4864),
        ("MIG-2", "NVIDIA A100-SXM4-40GB MIG 2g.10gb", 14, 9856),
        ("MIG-3", "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", 7, 19968),
        ("GPU-v", "Tesla V100-SXM2-16GB", 40, 16 * 1024),
    ]


def test_a_mig_instance_can_be_picked_by_its_uuid_and_its_gpu_cannot() -> None:
    (found,) = discover("MIG-2", nvml=FakeNvml([SLICED]), cores=(0,), memory_bytes=GIB)
    assert found.id == "MIG-2"
    with pytest.raises(SettingsError, match=r"'GPU-m' is no device here.*MIG-1, MIG-2, MIG-3"):
        discover("GPU-m", nvml=FakeNvml([SLICED]), cores=(0,), memory_bytes=GIB)


def test_a_gpu_in_mig_mode_without_instances_is_no_device_and_the_log_says_what_to_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    empty = replace(SLICED, instances=(None,) * 7)
    found = discover("", nvml=FakeNvml([empty, V100]), cores=(0,), memory_bytes=GIB)
    assert [one.id for one in found] == ["GPU-v"]
    assert "GPU-m is in MIG mode without an instance" in caplog.text


@pytest.mark.parametrize("call", ["nvmlDeviceGetMigMode", "nvmlDeviceGetMigDeviceHandleByIndex"])
def test_another_error_of_nvml_is_not_taken_for_no_mig(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object) -> None:
        raise RuntimeError("GPU is lost")

    monkeypatch.setattr(FakeNvml, call, lost)
    with pytest.raises(RuntimeError, match="GPU is lost"):
        discover("", nvml=FakeNvml([SLICED]), cores=(0,), memory_bytes=GIB)


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
