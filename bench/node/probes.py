"""Saturating probes as the benchmark uses them: all with blocks of the same work, told to run together."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from bench.node.stage import Member
from bench.node.workers import LEAD_S, hold_to
from gateway_plugin.probe_protocol import Calibrate, Calibrated, Prepare, Prepared, Run
from gateway_plugin.verify.probe_process import ProbeProcess

BLOCK_S = 0.01
"""A twentieth of the window in which shares are kept on a CPU."""
SLICE_S = 0.1


@dataclass(frozen=True, slots=True)
class Counted:
    """What a probe got done in a run."""

    by_slice: tuple[int, ...]
    """Blocks that ended in each SLICE_S."""

    @property
    def blocks(self) -> int:
        return sum(self.by_slice)

    def rate_hz(self, from_s: float, until_s: float) -> float:
        """Blocks in a second in that part of the run (whole slices), seconds after its start."""
        first, last = round(from_s / SLICE_S), round(until_s / SLICE_S)
        return sum(self.by_slice[first:last]) / ((last - first) * SLICE_S)


class Probes:
    """Probes on one core, one for each member, by the members' order."""

    def __init__(self, members: Sequence[Member]) -> None:
        """Raises: ProbeFailed."""
        self._stack = ExitStack()
        self._processes: dict[int, ProbeProcess] = {}
        self._running: dict[int, Run] = {}
        for number, member in enumerate(members):
            process = ProbeProcess(member.name, env={"CUDA_VISIBLE_DEVICES": ""})
            self._stack.callback(process.close)
            hold_to(process.pid, member.config)
            self._processes[number] = process
        for member, process in zip(members, self._processes.values(), strict=True):
            process.ask(_prepare(member), Prepared)
        self._repeats = self._processes[0].ask(Calibrate(BLOCK_S), Calibrated).repeats

    def __enter__(self) -> Probes:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def pid(self, number: int) -> int:
        return self._processes[number].pid

    def kill(self, number: int) -> None:
        """SIGKILL; it takes no part any more."""
        os.kill(self.pid(number), signal.SIGKILL)
        del self._processes[number]
        self._running.pop(number, None)

    def begin(self, run_s: float) -> float:
        """Let all of them run; when they begin (monotonic clock)."""
        start_s = time.monotonic() + LEAD_S
        run = Run(self._repeats, gated=True, begin_s=start_s, count_s=start_s, end_s=start_s + run_s, slice_s=SLICE_S)
        for number, process in self._processes.items():
            process.send(run)
            self._running[number] = run
        return start_s

    def ran(self) -> dict[int, Counted]:
        """What came of the last `begin`, once it is over, by the members' order. Raises: ProbeFailed."""
        running, self._running = self._running, {}
        return {number: Counted(self._processes[number].ran(run).by_slice) for number, run in running.items()}


def _prepare(member: Member) -> Prepare:
    return Prepare(
        token_socket=member.config.token_socket,
        credential=member.config.credential,
        request=member.config.quota_request,
        threads=1,
        cuda=False,
    )
