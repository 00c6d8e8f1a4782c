"""MIG: a GPU that its owner has cut into instances, each a device of its own. Nothing here cuts or joins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from gateway_plugin.model import Device
from gateway_plugin.node.nvml import Nvml

_MARK = " MIG "


def mig_enabled(nvml: Nvml, gpu: Any) -> bool:
    """Whether the GPU is in MIG mode now; then it computes through instances only."""
    try:
        return nvml.nvmlDeviceGetMigMode(gpu)[0] == 1
    except Exception as error:  # NVML's own error class; GPUs without MIG answer "not supported"
        if "not supported" in str(error).lower():
            return False
        raise


def mig_instances(nvml: Nvml, gpu: Any) -> tuple[Device, ...]:
    """Its instances as devices, in NVML's order; none where none was made."""
    return tuple(_instance(nvml, gpu, handle) for handle in _handles(nvml, gpu))


def _handles(nvml: Nvml, gpu: Any) -> Iterator[Any]:
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            yield nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except Exception as error:  # NVML's own error class; places without an instance answer "not found"
            if "not found" not in str(error).lower():
                raise


def _instance(nvml: Nvml, gpu: Any, handle: Any) -> Device:
    attributes = nvml.nvmlDeviceGetAttributes(handle)
    return Device(
        id=nvml.nvmlDeviceGetUUID(handle),
        kind=_kind(nvml.nvmlDeviceGetName(gpu), nvml.nvmlDeviceGetName(handle), attributes),
        units=max(1, int(attributes.multiprocessorCount) // 2),
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
    )


def _kind(gpu_name: str, name: str, attributes: Any) -> str:
    """The GPU's name with the profile's, e.g. `NVIDIA A100-SXM4-40GB MIG 2g.10gb`; older drivers leave that out."""
    if _MARK in name:
        return name
    compute, slices = int(attributes.computeInstanceSliceCount), int(attributes.gpuInstanceSliceCount)
    part = f"{compute}c." if compute != slices else ""
    return f"{gpu_name}{_MARK}{part}{slices}g.{math.ceil(attributes.memorySizeMB / 1024)}gb"
