"""The environment that CUDA's Multi-Process Service reads, in the exact forms of NVIDIA's text. Pure.

Devices are named by UUID everywhere, never by index: indices change with the driver's order and with whatever else is
visible. A daemon and its clients see one device only, so that inside, its ordinal is always 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway_plugin.model import Device, ReplicaSpec

PIPE_DIRECTORY = "CUDA_MPS_PIPE_DIRECTORY"
LOG_DIRECTORY = "CUDA_MPS_LOG_DIRECTORY"
ACTIVE_THREAD_PERCENTAGE = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
PINNED_DEVICE_MEM_LIMIT = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
_MIB = 1024**2


def gpu_environment(device: Device) -> dict[str, str]:
    """What every process on a GPU or MIG instance needs, with MPS or without: that one device and no other."""
    return {"CUDA_VISIBLE_DEVICES": device.id, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def daemon_environment(device: Device, *, pipes: Path, logs: Path) -> dict[str, str]:
    """For the control daemon. It sets no default percentage: that stays 100, and each client brings its own."""
    return gpu_environment(device) | {PIPE_DIRECTORY: str(pipes), LOG_DIRECTORY: str(logs)}


def client_environment(spec: ReplicaSpec, device: Device, *, pipes: Path) -> dict[str, str]:
    """For a replica. It must be there before CUDA starts in it; later changes have no effect."""
    env = gpu_environment(device) | {
        PIPE_DIRECTORY: str(pipes),
        ACTIVE_THREAD_PERCENTAGE: str(spec.sm_partition),
    }
    if spec.live.memory_bytes is not None:
        env[PINNED_DEVICE_MEM_LIMIT] = pinned_memory_limit([spec.live.memory_bytes], cards=[device.memory_bytes])
    return env


def pinned_memory_limit(limits: Sequence[int], *, cards: Sequence[int]) -> str:
    """`0=40960M,1=…M`: for each visible device by its ordinal a limit in MiB, from bytes.

    A limit is cut to the card's memory and rounded down to whole MiB, so that the limits on a card never sum to more
    than the bytes that placement counted.
    """
    parts = (min(limit, card) // _MIB for limit, card in zip(limits, cards, strict=True))
    return ",".join(f"{ordinal}={mib}M" for ordinal, mib in enumerate(parts))
