"""The device a replica computes on: what "threads", "memory" and "synchronize" mean on each.

torch is imported inside the methods: a plain function may live without it, and nothing may touch CUDA before
gunicorn has forked its worker.
"""

from __future__ import annotations

import contextlib
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gshare.config import ReplicaConfig
from gshare.errors import ConfigError

if TYPE_CHECKING:
    import torch

CPU_PREFIX = "cpu"


@dataclass(frozen=True, slots=True)
class Device:
    """One device, ready to compute on."""

    id: str
    """`cpu:0`, or the UUID of a GPU or MIG instance where it is known."""
    kind: str
    """`cpu`, or the GPU's product name."""
    torch_name: str
    """What torch calls it: `cpu` or `cuda:0`, the only one this process sees."""
    threads: int
    """Intra-op threads on a cpu; 1 on cuda."""

    @property
    def is_cuda(self) -> bool:
        return self.torch_name != "cpu"

    @property
    def torch_device(self) -> torch.device:
        import torch

        return torch.device(self.torch_name)

    def synchronize(self) -> None:
        """Wait until everything queued on the device is done."""
        if self.is_cuda:
            import torch

            torch.cuda.synchronize(self.torch_device)

    def memory_bytes(self) -> int:
        """What this process holds: device memory reserved by torch on cuda, resident memory on a cpu."""
        if self.is_cuda:
            import torch

            return torch.cuda.memory_reserved(self.torch_device)
        return resident_bytes()


def resident_bytes() -> int:
    """Resident memory of this process, mapped files included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def core_count(cpus: str) -> int:
    """How many cores GSHARE_CPUS names; empty: all this process may run on. Raises: ConfigError."""
    return len(cores_of(cpus)) if cpus else len(os.sched_getaffinity(0))


def cores_of(cpus: str) -> set[int]:
    """The core numbers that GSHARE_CPUS names. Raises: ConfigError."""
    try:
        return {int(core) for core in cpus.split(",")}
    except ValueError as error:
        raise ConfigError(f"GSHARE_CPUS={cpus!r}: core numbers with commas between, e.g. 0,1") from error


def settle(cpus: str) -> None:
    """Run every thread of this process on the cores that GSHARE_CPUS names, and nowhere else; empty: no change.

    A replica loads on whatever core is idle; from its first pass on it keeps to its own. Its node holds it there, too.
    """
    if not cpus:
        return
    cores = cores_of(cpus)
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile, or this container has other cores
            os.sched_setaffinity(int(thread.name), cores)


def open_device(config: ReplicaConfig) -> Device:
    """Choose the device and set torch up for it. Runs in the device thread of a forked worker.

    Raises:
        ConfigError: a GPU was assigned and this torch cannot use it.
    """
    wants_cpu = config.device.startswith(CPU_PREFIX)
    if config.device and not wants_cpu:
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", config.device)
    import torch

    if not wants_cpu and torch.cuda.is_available():
        if config.gpu_mem:
            limit_torch_memory(config.gpu_mem)
        name = torch.cuda.get_device_name(0)
        return Device(id=config.device or "cuda", kind=name, torch_name="cuda:0", threads=1)
    if config.device and not wants_cpu:
        raise ConfigError(
            f"GSHARE_DEVICE={config.device!r}: torch {torch.__version__} sees no such GPU; install a torch build "
            "that fits its driver (GSHARE_TORCH_INDEX), or assign cpu:0"
        )
    return _open_cpu(config)


def limit_torch_memory(memory_bytes: int) -> None:
    """Let torch's allocator hold no more than this on the GPU; beyond it, it raises its out-of-memory error.

    It stands beside MPS's limit, which is not there in time sharing, and counts what torch allocates and nothing else:
    a CUDA context and what libraries take by themselves come on top.
    """
    import torch

    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, memory_bytes / total), 0)


def plain_device(config: ReplicaConfig) -> Device:
    """The device entry of a function without a model: this machine's processor, torch untouched."""
    return Device(id="none", kind=platform.machine(), torch_name="cpu", threads=core_count(config.cpus))


def _open_cpu(config: ReplicaConfig) -> Device:
    import torch

    threads = core_count(config.cpus)
    torch.set_num_threads(threads)
    if torch.get_num_interop_threads() != 1:  # may be set once only, before any parallel work
        torch.set_num_interop_threads(1)
    return Device(id=config.device or "cpu:0", kind="cpu", torch_name="cpu", threads=threads)
