"""Which devices this machine has: its GPUs as NVML tells, or its cores."""

from __future__ import annotations

import importlib
import logging
import os
import re
from pathlib import Path
from typing import Any, Protocol

from gateway_plugin.errors import SettingsError
from gateway_plugin.model import Device

log = logging.getLogger(__name__)
_CPU = re.compile(r"cpu:([0-9]+)-([0-9]+)")
_CORES_PER_SM = {(7, 0): 64, (7, 2): 64, (7, 5): 64, (8, 0): 64}
"""CUDA cores of one SM by compute capability, where it is not 128 (NVIDIA's architecture white papers)."""


class Nvml(Protocol):
    """What we ask of NVML; `pynvml` has it."""

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Any: ...
    def nvmlDeviceGetUUID(self, handle: Any, /) -> str: ...
    def nvmlDeviceGetName(self, handle: Any, /) -> str: ...
    def nvmlDeviceGetMemoryInfo(self, handle: Any, /) -> Any: ...
    def nvmlDeviceGetNumGpuCores(self, handle: Any, /) -> int: ...
    def nvmlDeviceGetCudaComputeCapability(self, handle: Any, /) -> tuple[int, int]: ...
    def nvmlDeviceGetMigMode(self, handle: Any, /) -> tuple[int, int]: ...


def discover(wanted: str, *, nvml: Nvml | None, cores: tuple[int, ...], memory_bytes: int) -> tuple[Device, ...]:
    """Devices for `GSHARE_DEVICES`: all GPUs when empty, the CPU where there are none.

    Raises:
        SettingsError: a part that names no device here.
    """
    gpus = _gpus(nvml) if nvml is not None else ()
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
            f"GSHARE_DEVICES: {part!r} is no device here; write a GPU's UUID ({have}) or cpu:FIRST-LAST "
            f"with cores among {', '.join(map(str, cores))}"
        )
    return _cpu(f"cpu:{index}", mine, memory_bytes)


def _cpu(device_id: str, cores: tuple[int, ...], memory_bytes: int) -> Device:
    return Device(id=device_id, kind="cpu", units=len(cores), memory_bytes=memory_bytes, cores=cores)


def _gpus(nvml: Nvml) -> tuple[Device, ...]:
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        if _mig_enabled(nvml, handle):
            log.warning(
                "GPU %s is in MIG mode: left out, its instances are not used yet", nvml.nvmlDeviceGetUUID(handle)
            )
            continue
        found.append(
            Device(
                id=nvml.nvmlDeviceGetUUID(handle),
                kind=nvml.nvmlDeviceGetName(handle),
                units=sm_count(nvml.nvmlDeviceGetNumGpuCores(handle), nvml.nvmlDeviceGetCudaComputeCapability(handle))
                // 2,
                memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
            )
        )
    return tuple(found)


def sm_count(cuda_cores: int, capability: tuple[int, int]) -> int:
    """Streaming multiprocessors of a GPU, since NVML only tells CUDA cores."""
    return cuda_cores // _CORES_PER_SM.get((capability[0], capability[1]), 128)


def _mig_enabled(nvml: Nvml, handle: Any) -> bool:
    try:
        return nvml.nvmlDeviceGetMigMode(handle)[0] == 1
    except Exception as error:  # NVML's own error class; GPUs without MIG answer "not supported"
        if "not supported" in str(error).lower():
            return False
        raise


def open_nvml() -> Nvml | None:
    """NVML, initialised; None on a machine without NVIDIA's driver."""
    nvml: Any = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        log.info("no NVIDIA driver (%s): the CPU is the device", error)
        return None
    return nvml  # type: ignore[no-any-return]


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
