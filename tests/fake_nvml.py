"""NVML for machines without a GPU: the same calls, answered as pynvml does."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GIB = 1024**3


@dataclass(frozen=True)
class Instance:
    """A MIG instance; older drivers give it the bare name of its GPU."""

    uuid: str
    name: str
    sms: int
    memory_bytes: int
    gpu_slices: int = 1
    compute_slices: int = 1


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    uuid: str
    name: str
    cores: int
    capability: tuple[int, int]
    memory_bytes: int = 16 * GIB
    mig: int | None = None
    """None: a GPU that knows no MIG."""
    instances: tuple[Instance | None, ...] = ()
    """By MIG index; None: nothing is there."""


@dataclass
class FakeNvml:
    """A machine with these GPUs, in this order, and these processes on each by UUID."""

    gpus: list[Gpu] = field(default_factory=list)
    pids: dict[str, list[int]] = field(default_factory=dict)

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return len(self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int, /) -> Gpu:
        return self.gpus[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str, /) -> Gpu | Instance:
        everything: list[Gpu | Instance] = [*self.gpus, *(one for gpu in self.gpus for one in gpu.instances if one)]
        return next(one for one in everything if one.uuid == uuid)

    def nvmlDeviceGetUUID(self, handle: Gpu | Instance, /) -> str:
        return handle.uuid

    def nvmlDeviceGetName(self, handle: Gpu | Instance, /) -> str:
        return handle.name

    def nvmlDeviceGetMemoryInfo(self, handle: Gpu | Instance, /) -> Any:
        return SimpleNamespace(total=handle.memory_bytes)

    def nvmlDeviceGetNumGpuCores(self, handle: Gpu, /) -> int:
        return handle.cores

    def nvmlDeviceGetCudaComputeCapability(self, handle: Gpu, /) -> tuple[int, int]:
        return handle.capability

    def nvmlDeviceGetMigMode(self, handle: Gpu, /) -> tuple[int, int]:
        if handle.mig is None:
            raise RuntimeError("Not Supported")
        return handle.mig, handle.mig

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Gpu, /) -> int:
        return len(handle.instances)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Gpu, index: int, /) -> Instance:
        instance = handle.instances[index]
        if instance is None:
            raise RuntimeError("Not Found")
        return instance

    def nvmlDeviceGetAttributes(self, handle: Instance, /) -> Any:
        return SimpleNamespace(
            multiprocessorCount=handle.sms,
            gpuInstanceSliceCount=handle.gpu_slices,
            computeInstanceSliceCount=handle.compute_slices,
            memorySizeMB=handle.memory_bytes // 1024**2,
        )

    def nvmlDeviceGetComputeRunningProcesses(self, handle: Gpu | Instance, /) -> list[Any]:
        return [SimpleNamespace(pid=pid, usedGpuMemory=GIB) for pid in self.pids.get(handle.uuid, [])]


V100 = Gpu("GPU-v", "Tesla V100-SXM2-16GB", 5120, (7, 0))
H200 = Gpu("GPU-h", "NVIDIA H200", 16896, (9, 0), 141 * GIB, mig=0)
