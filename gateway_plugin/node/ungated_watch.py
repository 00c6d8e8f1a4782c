"""Watches the replicas of CPU devices for device use without a token: the kernel's counts against the ledger's.

Both are read at the same moment. While a scheduler is away nothing is judged: replicas then pace themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.model import Device, ReplicaState, ReplicaStatus
from gateway_plugin.node.ungated import ALLOWANCE_CORES, Interval, Standing, judge
from gateway_plugin.node.ungated_cpu import ProcessTree
from gateway_plugin.processes import ProcessStat, read_stats

log = logging.getLogger(__name__)
LOOK_S = 1.0
LONGEST_INTERVAL_S = 3.0
"""A scheduler that was away for longer can say nothing of that time."""


class LedgerSource(Protocol):
    """What is used of `schedulers.Scheduler`."""

    async def read_ledger(self) -> Ledger: ...


@dataclass(slots=True)
class _Watched:
    """One replica since it became ready."""

    tree: ProcessTree
    at_s: float
    token_s: float
    standing: Standing


class UngatedWatch:
    """All methods run in the agent's event loop."""

    def __init__(
        self,
        *,
        statuses: Callable[[], Iterable[ReplicaStatus]],
        report: Callable[[str, bool], None],
        read: Callable[[], Mapping[int, ProcessStat]] = read_stats,
    ) -> None:
        """`report(replica_id, ungated)` is called at each look; `read` gives the kernel's counts, in another thread."""
        self._statuses, self._report, self._read = statuses, report, read
        self._watched: dict[str, _Watched] = {}

    async def run(self, devices: Iterable[Device], ledgers: Mapping[str, LedgerSource]) -> None:
        """Look each second until cancelled. GPUs are passed by: CPU time says nothing about their use."""
        sources = [ledgers[device.id] for device in devices if device.cores]
        while sources:
            await asyncio.sleep(LOOK_S)
            for source in sources:
                await self.look(await source.read_ledger())

    def entered(self, ledger: Ledger) -> Ledger:
        """The ledger with what was seen besides it, of each replica since it got ready."""
        entries = tuple(
            msgspec.structs.replace(entry, ungated_core_s=one.standing.ungated_core_s)
            if (one := self._watched.get(entry.replica))
            else entry
            for entry in ledger.entries
        )
        return msgspec.structs.replace(ledger, entries=entries)

    async def look(self, ledger: Ledger) -> None:
        """Compare what the replicas in a fresh ledger have used since the last look."""
        ready = {one.spec.id: one for one in self._statuses() if one.state is ReplicaState.READY}
        for replica in self._watched.keys() - ready.keys():
            del self._watched[replica]  # it loads again, or has ended
        entries = [entry for entry in ledger.entries if entry.replica in ready]
        if entries:
            stats = await asyncio.to_thread(self._read)
            for entry in entries:
                self._judge(ready[entry.replica], entry, stats, at_s=ledger.at_s)

    def _judge(self, status: ReplicaStatus, entry: Entry, stats: Mapping[int, ProcessStat], *, at_s: float) -> None:
        replica, token_s = status.spec.id, entry.used_s + entry.held_s
        one = self._watched.get(replica)
        if one is None or one.tree.root != status.pid:
            one = self._watched[replica] = _Watched(ProcessTree(status.pid), at_s, token_s, Standing())
        seen = Interval(
            length_s=at_s - one.at_s,
            cpu_s=one.tree.used_s(stats),
            token_s=token_s - one.token_s,
            units=len(entry.units),
        )
        one.at_s, one.token_s = at_s, token_s
        if 0 < seen.length_s <= LONGEST_INTERVAL_S:
            before, one.standing = one.standing, judge(one.standing, seen)
            _tell(replica, before, one.standing, seen)
            self._report(replica, one.standing.ungated)


def _tell(replica: str, before: Standing, now: Standing, seen: Interval) -> None:
    """Once for each change."""
    if now.ungated and not before.ungated:
        log.warning(
            "%s: ungated_device_use: it uses %.2f cores, its tokens stand for %.2f, and %.2f are allowed for handling "
            "requests; docs/writing-a-function.md says what is gated",
            replica,
            seen.cpu_s / seen.length_s,
            max(seen.token_s, 0.0) * seen.units / seen.length_s,
            ALLOWANCE_CORES,
        )
    elif before.ungated and not now.ungated:
        log.info("%s: no ungated_device_use any more; %.1f core-seconds in all", replica, now.ungated_core_s)
