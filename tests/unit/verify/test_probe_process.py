"""A probe process on a scheduler's socket: it counts what it gets done, and lives no longer than who asks it."""

from __future__ import annotations

import os
import time

import pytest
from gshare.turn import Gating

from gateway_plugin.errors import ProbeFailed
from gateway_plugin.probe_protocol import Calibrate, Calibrated, Prepare, Prepared, Ran, Run
from gateway_plugin.verify.probe_process import ProbeProcess
from tests.token_stand import CREDENTIAL, PATIENCE_S, TokenStand, token_stand


def a_run(*, repeats: int = 1, gated: bool = True, seconds: float = 0.4, pause_s: float = 0.0) -> Run:
    now_s = time.monotonic()
    return Run(repeats, gated, begin_s=now_s, count_s=now_s, end_s=now_s + seconds, slice_s=0.1, pause_s=pause_s)


def prepare(probe: ProbeProcess, stand: TokenStand, *, request: float, limit: float) -> None:
    path = stand.register(probe.name, request=request, limit=limit)
    probe.ask(Prepare(path, CREDENTIAL, request, threads=1, cuda=False), Prepared)


def run(probe: ProbeProcess, asked: Run) -> Ran:
    probe.send(asked)
    return probe.ran(asked)


def test_a_probe_counts_its_blocks_held_by_tokens_free_and_resting() -> None:
    with token_stand() as stand:
        probe = ProbeProcess("p")
        try:
            prepare(probe, stand, request=0.2, limit=0.2)
            made = probe.ask(Calibrate(0.005), Calibrated)
            assert made.repeats >= 1 and made.block_s > 0

            held = run(probe, a_run(repeats=made.repeats, seconds=1.0))
            assert held.gating == Gating.TOKENS and held.reason == ""
            assert held.completed == sum(held.by_slice) > 0 and len(held.by_slice) == 10
            assert held.waited_s > held.used_s > 0
            assert held.wanted_s > 0.9
            booked = stand.wait_for_entry("p", holding=False)
            assert booked.used_s >= held.used_s and booked.tokens >= held.tokens > 0

            free = run(probe, a_run(repeats=made.repeats, gated=False))
            assert free.gating == Gating.NONE and free.tokens == 0 and "without tokens" in free.reason
            assert free.used_s > free.waited_s == 0
            assert stand.entry("p").used_s == booked.used_s

            resting = run(probe, a_run(repeats=1, pause_s=0.02))
            assert resting.wanted_s < 0.9 * 0.4
        finally:
            probe.close()


def test_a_probe_ends_in_the_middle_of_a_run_when_its_standard_input_does() -> None:
    with token_stand() as stand:
        probe = ProbeProcess("p")
        try:
            prepare(probe, stand, request=0.5, limit=0.5)
            probe.send(a_run(seconds=1000))
            stand.wait_for_entry("p", connected=True)
        finally:
            probe.close()
        stand.wait_for_entry("p", connected=False)
        assert not os.path.exists(f"/proc/{probe.pid}")  # noqa: PTH110


def test_a_probe_without_a_scheduler_or_killed_is_named_with_the_reason() -> None:
    probe = ProbeProcess("probe 7")
    try:
        with pytest.raises(ProbeFailed, match="probe 7: not prepared"):
            probe.ask(Calibrate(0.01), Calibrated)
        os.kill(probe.pid, 9)
        with pytest.raises(ProbeFailed, match=r"probe 7: it (has ended|ended with code -9)"):
            probe.ask(Calibrate(0.01), Calibrated, timeout_s=PATIENCE_S)
    finally:
        probe.close()
