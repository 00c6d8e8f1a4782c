"""CPU time of everything that a replica has started, from the kernel's own counts. Pure: the counts are an argument.

A member is whoever is in the replica's session, descends from its first process, or was a member before: a daemon that
leaves session and parent stays counted. Its first process adopts what loses its parent (`gshare.orphans`), so even one
that does all that between two looks is found.
"""

from __future__ import annotations

from collections.abc import Mapping

from gateway_plugin.processes import ProcessStat, with_descendants

Key = tuple[int, int]
"""Pid and start time: a number that is used again is somebody else."""


class ProcessTree:
    """One replica's processes."""

    def __init__(self, root: int) -> None:
        """`root`: the replica's first process, leader of its session."""
        self.root = root
        self._seen: dict[Key, ProcessStat] = {}

    def used_s(self, stats: Mapping[int, ProcessStat]) -> float:
        """CPU time since the last look, at least; the first look begins the count."""
        now = {(pid, stats[pid].start_ticks): stats[pid] for pid in self._members(stats)}
        before, self._seen = self._seen, now
        if not before:
            return 0.0
        # Who ended is in its parent's `waited_s`, unless nobody waited for it. Each of the two sums may miss
        # something; neither counts anything twice.
        in_all_s = _total_s(now) - _total_s(before)
        living_s = sum(stat.own_s - (before[key].own_s if key in before else 0.0) for key, stat in now.items())
        return max(in_all_s, living_s)

    def _members(self, stats: Mapping[int, ProcessStat]) -> set[int]:
        return with_descendants([pid for pid, stat in stats.items() if self._belongs(pid, stat)], stats)

    def _belongs(self, pid: int, stat: ProcessStat) -> bool:
        return pid == self.root or stat.session == self.root or (pid, stat.start_ticks) in self._seen


def _total_s(seen: Mapping[Key, ProcessStat]) -> float:
    return sum(stat.own_s + stat.waited_s for stat in seen.values())
