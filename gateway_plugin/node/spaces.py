"""Which owner each device's space has."""

from __future__ import annotations

from collections.abc import Iterable

from gateway_plugin.model import Device
from gateway_plugin.node.mps import MpsDaemon
from gateway_plugin.node.mps_space import MpsSpace
from gateway_plugin.node.spatial import CpuSpace, SpaceOwner, TimeOnlySpace
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Mps

OFF = "GSHARE_MPS=off: shared in time only, partitions and memory limits of MPS are not in force"


def spaces_of(devices: Iterable[Device], *, mps: Mps, paths: Paths) -> dict[str, SpaceOwner]:
    """The owner of each device's space, by the device's id."""
    return {device.id: _space_of(device, mps=mps, paths=paths) for device in devices}


def _space_of(device: Device, *, mps: Mps, paths: Paths) -> SpaceOwner:
    if device.cores:
        return CpuSpace(device)
    if mps is Mps.OFF:
        return TimeOnlySpace(device, degraded=OFF)
    return MpsSpace(mps_daemon(device, paths=paths), required=mps is Mps.REQUIRED)


def mps_daemon(device: Device, *, paths: Paths) -> MpsDaemon:
    """The daemon of a device, wherever it is asked for."""
    return MpsDaemon(device, pipes=paths.mps_pipes(device.id), logs=paths.mps_logs(device.id))
