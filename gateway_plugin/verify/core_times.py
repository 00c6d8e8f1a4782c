"""Who had a core: the kernel's account of cores and of processes."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from gateway_plugin.processes import read_stat

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL = 0, 1, 2, 5, 6, 7
"""Columns of a core's line in /proc/stat that are not idle time; guests' time is part of the first two."""


def busy_s(cores: Collection[int]) -> float:
    """Time since the machine started in which these cores were not idle, summed; stolen by a hypervisor included."""
    return busy_in(Path("/proc/stat").read_text(), cores)


def busy_in(stat: str, cores: Collection[int]) -> float:
    """The same, from the text of /proc/stat."""
    names = {f"cpu{core}" for core in cores}
    ticks = 0
    for line in stat.splitlines():
        name, *columns = line.split()
        if name in names:
            ticks += sum(int(columns[place]) for place in (_USER, _NICE, _SYSTEM, _IRQ, _SOFTIRQ, _STEAL))
    return ticks / _TICKS_PER_S


def cpu_s(pid: int) -> float:
    """CPU time that a process has had so far; 0 if there is none of that number."""
    stat = read_stat(pid)
    return stat.own_s if stat is not None else 0.0
