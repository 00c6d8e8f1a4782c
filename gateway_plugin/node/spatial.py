"""Space on a device: what holds a replica to the units that placement gave it.

Each kind of device has an owner of its own behind one Protocol, so that the runner starts and stops replicas in the
same way on all of them. A replica that cannot be held to its units is either refused or says so (`degraded`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from gateway_plugin.model import Device, ReplicaSpec
from gateway_plugin.node.mps_env import gpu_environment
from gateway_plugin.processes import hold_to_cores

Clear = Callable[[str, str], Awaitable[None]]
"""`clear(device_id, reason)`: stop every replica of a device; returns when the last one is gone."""


class SpaceOwner(Protocol):
    """The space of one device. All methods run in the agent's event loop."""

    @property
    def degraded(self) -> str:
        """Why a replica that starts now is not held to its units; empty: it is."""

    async def open(self) -> None:
        """Make the device ready; never fails: what does not work makes it degraded."""

    async def ready(self) -> None:
        """Wait until replicas may start. Raises: AgentRefused if they may not, with the reason and the remedy."""

    def environment(self, spec: ReplicaSpec, /) -> dict[str, str]:
        """What the replica's environment needs before anything touches the device."""

    def admit(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None:
        """This process was just spawned and loads now; `degraded` as it is at its start.

        Raises:
            OSError: the system does not allow it.
        """

    def own(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None:
        """Hold this process, which is about to serve or was adopted, and all it has started, to its units.

        Raises:
            OSError: the system does not allow it.
        """

    async def before_stop(self, pid: int) -> None:
        """Called once it is drained and before SIGTERM; never fails."""

    def release(self, replica_id: str, *, asked: bool) -> None:
        """A replica's process has ended; `asked`: because it was told to."""

    async def watch(self, clear: Clear) -> None:
        """Look after the device until cancelled; `clear` is for when its replicas cannot go on."""

    async def close(self) -> None:
        """Leave nothing of ours behind. No replica runs any more."""

    def pids(self) -> frozenset[int]:
        """Processes that it knows to use the device by right: its own, and what it holds to units."""


class Unplaced:
    """For functions without a device."""

    degraded = ""

    async def open(self) -> None: ...

    async def ready(self) -> None: ...

    def environment(self, _spec: ReplicaSpec, /) -> dict[str, str]:
        return {}

    def admit(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None: ...

    def own(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None: ...

    async def before_stop(self, pid: int) -> None: ...

    def release(self, replica_id: str, *, asked: bool) -> None: ...

    async def watch(self, clear: Clear) -> None: ...

    async def close(self) -> None: ...

    def pids(self) -> frozenset[int]:
        return frozenset()


class CpuSpace(Unplaced):
    """Cores: a replica's processes and threads serve on the cores of its units and nowhere else.

    It may load on all cores of the device, at a replica's niceness: six functions that import torch on one and the same
    core take minutes.
    """

    def __init__(self, device: Device) -> None:
        self._cores = device.cores

    def environment(self, _spec: ReplicaSpec, /) -> dict[str, str]:
        return {"CUDA_VISIBLE_DEVICES": ""}

    def admit(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None:  # noqa: ARG002
        hold_to_cores(pid, self._cores)

    def own(self, spec: ReplicaSpec, pid: int, *, degraded: str) -> None:  # noqa: ARG002
        if spec.place is not None and spec.place.units:
            hold_to_cores(pid, [self._cores[unit] for unit in spec.place.units])


class TimeOnlySpace(Unplaced):
    """A GPU without partitions: replicas take turns on the whole of it."""

    def __init__(self, device: Device, *, degraded: str) -> None:
        self._device = device
        self.degraded = degraded

    def environment(self, _spec: ReplicaSpec, /) -> dict[str, str]:
        return gpu_environment(self._device)
