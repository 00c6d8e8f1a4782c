"""Probes on one device that run together or one at a time, and the ledger's word on the same stretch of time."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from gshare.turn import Gating

from gateway_plugin.agent_protocol import Admitted
from gateway_plugin.errors import CannotVerify
from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.model import Device
from gateway_plugin.probe_protocol import Calibrate, Calibrated, Prepare, Prepared, Ran, Run
from gateway_plugin.verify.agent_link import AgentLink
from gateway_plugin.verify.core_times import busy_s, cpu_s
from gateway_plugin.verify.probe_process import START_S, ProbeProcess

AHEAD_S = 0.05
"""Between the order to run and its begin, so that all begin at once."""
FREE_LEAD_S = 0.05
GATED_LEAD_WINDOWS = 3
"""Shares are those of a steady state: a window's worth may be had at once after a rest."""
BLOCK = 1 / 20
"""Of the window: well below the tenth up to which shares are promised exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A probe to start."""

    name: str
    units: tuple[int, ...]
    quota: float
    gated: bool = True


@dataclass(frozen=True, slots=True)
class Member:
    """One that runs."""

    wanted: Wanted
    admitted: Admitted
    process: ProbeProcess


@dataclass(frozen=True, slots=True)
class Stretch:
    """What happened from one reading of the ledger to the next."""

    ran: tuple[Ran, ...]
    seconds: float
    before: Ledger
    after: Ledger
    elsewhere: float
    """Part of the members' cores' time that went to other processes; 0 on a GPU, where nobody tells."""


class Team(contextlib.ExitStack):
    """Started by `start`; all its processes have ended when the context has."""

    def __init__(self, link: AgentLink, device: Device, *, pause_s: float = 0.0) -> None:
        """`pause_s`: rest of each probe after each block."""
        super().__init__()
        self._link, self._device, self._pause_s = link, device, pause_s
        self.members: tuple[Member, ...] = ()
        self.block_s = 0.0
        self._repeats = 1

    @property
    def window_s(self) -> float:
        return self.members[0].admitted.window_s

    @property
    def degraded(self) -> str:
        return self.members[0].admitted.degraded

    def start(self, wanted: Sequence[Wanted]) -> None:
        """Bring them up and give all of them the same work. Raises: PluginError."""
        self.members = tuple(self._begin(one) for one in wanted)
        for member in self.members:
            member.process.receive(Prepared, timeout_s=START_S)
        made = self.members[0].process.ask(Calibrate(self.window_s * BLOCK), Calibrated)
        self._repeats, self.block_s = made.repeats, made.block_s
        self.together(GATED_LEAD_WINDOWS * self.window_s)  # how long a block takes is known to the scheduler from here

    def alone(self, member: Member, seconds: float) -> float:
        """Blocks per second of one while the others rest, without any scheduler."""
        (ran,) = self._run([member], seconds, gated=False).ran
        return self.core_rate(member, ran) or (ran.completed / ran.span_s if ran.completed else 0.0)

    def core_rate(self, member: Member, ran: Ran) -> float | None:
        """Blocks per second of CPU time; None on a GPU, and where nothing got done."""
        if not self._device.cores or not ran.completed:
            return None
        return ran.completed / ran.cpu_s * len(member.wanted.units)

    def pace(self, member: Member, ran: Ran) -> float:
        """How fast it goes: blocks per second on a GPU; on cores the part of its time in which it was not kept waiting.

        What other processes on a core took away is none of a scheduler's doing, so it is no part of its time.
        """
        if not ran.completed:
            return 0.0
        if not self._device.cores:
            return ran.completed / ran.span_s
        core_s = ran.cpu_s / len(member.wanted.units)
        return core_s / (core_s + ran.waited_s)

    def together(self, seconds: float, *, gated: bool = True) -> Stretch:
        """All at once; those that are not to ask for tokens do not. Without `gated`: none does."""
        return self._run(self.members, seconds, gated=gated)

    def ledger(self) -> Ledger:
        return self._link.ledger(self._device.id)

    def others(self, before: Ledger, after: Ledger) -> float:
        """Part of the members' units' time that others used from one reading to the next."""
        ours = {member.admitted.id for member in self.members}
        units = {unit for member in self.members for unit in member.wanted.units}
        used_s = sum(
            used_between(entry, before) for entry in sharing(after, self._device, units) if entry.replica not in ours
        )
        return used_s / (after.at_s - before.at_s)

    def _cores(self) -> set[int]:
        units = {unit for member in self.members for unit in member.wanted.units}
        return {self._device.cores[unit] for unit in units} if self._device.cores else set()

    def _elsewhere_s(self) -> float:
        """Time of the members' cores since the machine started that none of their processes had."""
        return busy_s(self._cores()) - sum(cpu_s(member.process.pid) for member in self.members)

    def _begin(self, wanted: Wanted) -> Member:
        admitted = self._link.admit(self._device.id, units=wanted.units, quota=wanted.quota)
        process = ProbeProcess(wanted.name, env=admitted.env)
        self.callback(process.close)
        self._link.hold(admitted.id, process.pid)
        cuda = not self._device.cores
        threads = 1 if cuda else len(wanted.units)
        process.send(Prepare(admitted.socket, admitted.credential, wanted.quota, threads=threads, cuda=cuda))
        return Member(wanted, admitted, process)

    def _run(self, members: Sequence[Member], seconds: float, *, gated: bool) -> Stretch:
        begin_s = time.monotonic() + AHEAD_S
        count_s = begin_s + (GATED_LEAD_WINDOWS * self.window_s if gated else FREE_LEAD_S)
        orders = [
            self._order(member, gated, begin_s=begin_s, count_s=count_s, end_s=count_s + seconds) for member in members
        ]
        for member, order in zip(members, orders, strict=True):
            member.process.send(order)
        sleep_until(count_s)
        before, cores = self.ledger(), self._elsewhere_s()
        sleep_until(count_s + seconds)
        after, elsewhere_s = self.ledger(), self._elsewhere_s() - cores
        ran = tuple(member.process.ran(order) for member, order in zip(members, orders, strict=True))
        if after.at_s <= before.at_s:
            raise CannotVerify(f"the token scheduler of {self._device.id} went away while it was measured; try again")
        elsewhere = elsewhere_s / seconds / max(1, len(self._cores()))
        return Stretch(ran, seconds, before, after, elsewhere=max(0.0, elsewhere))

    def _order(self, member: Member, gated: bool, *, begin_s: float, count_s: float, end_s: float) -> Run:
        return Run(
            repeats=self._repeats,
            gated=gated and member.wanted.gated,
            begin_s=begin_s,
            count_s=count_s,
            end_s=end_s,
            pause_s=self._pause_s if gated else 0.0,
        )


def known(rates: tuple[float, ...], name: str) -> tuple[float, ...]:
    """Those with a block to go by. Raises: CannotVerify: there is none."""
    known = tuple(rate for rate in rates if rate > 0)
    if not known:
        raise CannotVerify(f"{name} got nothing done, even alone; something else keeps this machine busy: see `top`")
    return known


def lost_scheduler(ran: Sequence[Ran]) -> str:
    """Why one was not held by tokens at the end; empty: all were."""
    return next((one.reason for one in ran if one.gating != Gating.TOKENS), "")


def used_between(entry: Entry, before: Ledger) -> float:
    """Device time of a replica since an earlier reading, a token in hand included; 0 of one that was not there."""
    earlier = next((one for one in before.entries if one.replica == entry.replica), entry)
    return entry.used_s + entry.held_s - earlier.used_s - earlier.held_s


def sharing(ledger: Ledger, device: Device, units: set[int]) -> list[Entry]:
    """Who may use any of these units; on a GPU a unit is nobody's in particular."""
    return [entry for entry in ledger.entries if not device.cores or units & set(entry.units)]


def sleep_until(at_s: float) -> None:
    time.sleep(max(0.0, at_s - time.monotonic()))
