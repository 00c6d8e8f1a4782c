"""Which devices this machine has: its GPUs as NVML tells, or its cores."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path
from typing import Any

from gateway_plugin.errors import SettingsError
from gateway_plugin.model import Device
from gateway_plugin.node.mig import mig_enabled, mig_instances
from gateway_plugin.node.nvml import Nvml

log = logging.getLogger(__name__)
_CPU = re.compile(r"cpu:([0-9]+)-([0-9]+)")
_CORES_PER_SM = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""CUDA cores of one SM by compute capability, where it is not 128 (NVIDIA's architecture white papers)."""


def discover(wanted: str, *, nvml: Nvml | None, cores: tuple[int, ...], memory_bytes: int) -> tuple[Device, ...]:
    """Devices for `GSHARE_DEVICES`: all GPUs when empty, the CPU where there are none.

    Raises:
        SettingsError: a part that names no device here.
    """
    gpus = gpu_devices(nvml) if nvml is not None else ()
    if not wanted:
        return gpus or (_cpu("cpu:0", cores, memory_bytes),)
    parts = [part.strip() for part in wanted.split(",")]
    split = sum(part.startswith("cpu") for part in parts)
    return tuple(
        _chosen(part, index, gpus=gpus, cores=cores, memory_bytes=memory_bytes // max(1, split))
        for index, part in enumerate(parts)
    )


def _chosen(part: str, index: int, *, gpus: tuple[Device, ...], cores: tuple[int, ...], memory_bytes: int) -> Device:
    for gpu in gpus:
        if gpu.id == part:
            return gpu
    match = _CPU.fullmatch(part)
    mine = tuple(core for core in cores if match and int(match[1]) <= core <= int(match[2]))
    if not mine:
        have = ", ".join(gpu.id for gpu in gpus) or "no GPU"
        raise SettingsError(
            f"GSHARE_DEVICES: {part!r} is no device here; write the UUID of a GPU or MIG instance ({have}) "
            f"or cpu:FIRST-LAST with cores among {', '.join(map(str, cores))}"
        )
    return _cpu(f"cpu:{index}", mine, memory_bytes)


def _cpu(device_id: str, cores: tuple[int, ...], memory_bytes: int) -> Device:
    return Device(id=device_id, kind="cpu", units=len(cores), memory_bytes=memory_bytes, cores=cores)


def gpu_devices(nvml: Nvml) -> tuple[Device, ...]:
    """Every GPU, and of those in MIG mode their instances."""
    found: list[Device] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if not mig_enabled(nvml, handle):
            found.append(_gpu(nvml, handle))
        elif instances := mig_instances(nvml, handle):
            found.extend(instances)
        else:
            log.warning(
                "GPU %s is in MIG mode without an instance, so it is no device; make instances with nvidia-smi mig, "
                "or leave MIG mode",
                nvml.nvmlDeviceGetUUID(handle),
            )
    return tuple(found)


def _gpu(nvml: Nvml, handle: Any) -> Device:
    cores, capability = nvml.nvmlDeviceGetNumGpuCores(handle), nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Device(
        id=nvml.nvmlDeviceGetUUID(handle),
        kind=nvml.nvmlDeviceGetName(handle),
        units=sm_count(cores, capability) // 2,
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def sm_count(cuda_cores: int, capability: tuple[int, int]) -> int:
    """Streaming multiprocessors of a GPU, since NVML only tells CUDA cores."""
    return cuda_cores // _CORES_PER_SM.get((capability[0], capability[1]), 128)


def machine_cores() -> tuple[int, ...]:
    """Cores this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))


def machine_memory_bytes() -> int:
    """RAM, or the control group's limit where that is lower."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(limit)) if limit.isdigit() else total
