"""The first placement: the first units of the first device whose guaranteed shares still fit. Pure.

Rectangles and repacking come behind the same function later; nothing but this file knows how a place is found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gshare.share import GpuShare

from gateway_plugin.model import Device, Place

_ROUNDING = 1e-9
DEFAULT_MEMORY_BYTES = 64 * 1024**2
"""What a function without `gpu_mem` is counted with until it has been measured."""


@dataclass(frozen=True, slots=True)
class Occupant:
    """A replica that holds units and memory of a device."""

    place: Place
    quota_request: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class NoPlace:
    """Why there is none."""

    reason: str


def place(share: GpuShare, *, devices: Sequence[Device], occupants: Iterable[Occupant]) -> Place | NoPlace:
    """Where a replica of this share fits: on each of its units the requests sum to at most 1, and memory suffices.

    Devices are tried in order, units from the lowest; the reason for none names each device's shortage.
    """
    taken = list(occupants)
    shortages = []
    for device in devices:
        found = _on_device(share, device, [one for one in taken if one.place.device == device.id])
        if isinstance(found, Place):
            return found
        shortages.append(f"{device.id}: {found.reason}")
    return NoPlace("; ".join(shortages) or "no device")


def raised(place: Place, *, by: float, occupants: Iterable[Occupant]) -> Occupant | NoPlace:
    """So much more of the time guaranteed to one of the occupants, where it lies: as one more occupant, if it fits."""
    here = [one for one in occupants if one.place.device == place.device]
    load = {unit: sum(one.quota_request for one in here if unit in one.place.units) for unit in place.units}
    fullest = max(place.units, key=lambda unit: (load[unit], -unit))
    if load[fullest] + by > 1 + _ROUNDING:
        free = max(0.0, 1 - load[fullest])
        return NoPlace(f"needs {by:.2f} more of the time, {free:.2f} is free on unit {fullest} of {place.device}")
    return Occupant(place, by, 0)


def _on_device(share: GpuShare, device: Device, occupants: list[Occupant]) -> Place | NoPlace:
    wanted_bytes = share.memory_bytes or DEFAULT_MEMORY_BYTES
    free_bytes = device.memory_bytes - sum(one.memory_bytes for one in occupants)
    if wanted_bytes > free_bytes:
        return NoPlace(f"needs {_mib(wanted_bytes)} MiB of memory, {_mib(max(0, free_bytes))} MiB are free")
    load = [0.0] * device.units
    for one in occupants:
        for unit in one.place.units:
            load[unit] += one.quota_request
    free = [unit for unit in range(device.units) if load[unit] + share.quota_request <= 1 + _ROUNDING]
    count = share.units(device.units)
    if len(free) < count:
        return NoPlace(
            f"needs {share.quota_request:.2f} of the time on {count} of {device.units} units, "
            f"{len(free)} have that free"
        )
    return Place(device.id, tuple(free[:count]))


def _mib(size: int) -> int:
    return size // 1024**2
