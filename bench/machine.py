"""What a figure was measured on: no figure is shown without it."""

from __future__ import annotations

import importlib
import os
import platform
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine and its devices."""

    cpu: str
    cores: int
    """Cores this process may use."""
    gpus: tuple[str, ...]
    system: str
    python: str

    @property
    def title(self) -> str:
        """One line, e.g. `Intel(R) Xeon(R) (2 cores), no GPU, Linux 6.1 x86_64, Python 3.12.1`."""
        gpus = " + ".join(self.gpus) or "no GPU"
        return f"{self.cpu} ({self.cores} cores), {gpus}, {self.system}, Python {self.python}"


def this_machine() -> Machine:
    """Ask the kernel and, where there is a driver, NVML."""
    return Machine(
        cpu=cpu_model(Path("/proc/cpuinfo").read_text().splitlines()),
        cores=len(os.sched_getaffinity(0)),
        gpus=_gpu_names(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
    )


def cpu_model(cpuinfo: Iterable[str]) -> str:
    """The processor's name; its architecture where the kernel tells none (aarch64)."""
    for line in cpuinfo:
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return " ".join(value.split())
    return platform.machine()


def _gpu_names() -> tuple[str, ...]:
    nvml: Any = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return ()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        return tuple(str(nvml.nvmlDeviceGetName(handle)) for handle in handles)
    finally:
        nvml.nvmlShutdown()
