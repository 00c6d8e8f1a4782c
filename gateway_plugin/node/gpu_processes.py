"""Who computes on the GPUs here without being one of ours: NVML's lists against the replicas' sessions.

Such a process (a login's notebook, a child of a function that left its session) holds memory and time that no share
counts. It is not stopped; it is told as event `unmanaged_gpu_process` and counted.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gateway_plugin.node.nvml import Nvml
from gateway_plugin.processes import ProcessId, identify

log = logging.getLogger(__name__)
EVENT = "unmanaged_gpu_process"
LOOK_S = 10.0


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """One process with a context on a device."""

    device: str
    process: ProcessId
    session: int
    memory_bytes: int | None
    """Device memory that it holds; None where the driver does not say."""


def unmanaged(processes: Iterable[GpuProcess], ours: frozenset[int]) -> tuple[GpuProcess, ...]:
    """Those that are not in `ours` and not in a session of it, by device and pid. Pure.

    Args:
        ours: pids of MPS's processes and of replicas' first processes, each of which leads a session.
    """
    strangers = (one for one in processes if ours.isdisjoint((one.session, one.process.pid)))
    return tuple(sorted(strangers, key=lambda one: (one.device, one.process.pid)))


def gpu_processes(nvml: Nvml, handles: Mapping[str, Any]) -> tuple[GpuProcess, ...]:
    """What NVML tells of these devices. Processes of another PID namespace cannot be told apart and are left out."""
    found = []
    for device, handle in handles.items():
        for told in nvml.nvmlDeviceGetComputeRunningProcesses(handle):
            process = identify(told.pid)
            if process is not None:
                found.append(GpuProcess(device, process, _session(told.pid), told.usedGpuMemory))
    return tuple(found)


class GpuProcessWatch:
    """Looks now and then; each stranger is told once a device."""

    def __init__(self, nvml: Nvml, device_ids: Iterable[str], *, ours: Callable[[], frozenset[int]]) -> None:
        self._nvml, self._ours = nvml, ours
        self._handles = {one: nvml.nvmlDeviceGetHandleByUUID(one) for one in device_ids}
        self._told: set[tuple[str, ProcessId]] = set()
        self.present = 0
        """How many there were at the last look."""
        self.seen_total = 0
        """How many different ones there were so far."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.look()
            except Exception:  # the loop's edge: NVML's own errors, e.g. a GPU that fell off the bus
                log.exception("processes on the GPUs cannot be listed")
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """One look; NVML is asked in a thread, since a driver in trouble may take its time."""
        processes = await asyncio.to_thread(gpu_processes, self._nvml, self._handles)
        strangers = unmanaged(processes, self._ours())
        self.present = len(strangers)
        for one in strangers:
            if (one.device, one.process) not in self._told:
                self.seen_total += 1
                log.warning("%s: %s", EVENT, _describe(one))
        self._told = {(one.device, one.process) for one in strangers}


def _describe(stranger: GpuProcess) -> str:
    memory = "?" if stranger.memory_bytes is None else stranger.memory_bytes // 1024**2
    return (
        f"pid {stranger.process.pid} on {stranger.device} with {memory} MiB is no replica's: its use is in no share; "
        "stop it, or leave this device out of GSHARE_DEVICES"
    )


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return 0
