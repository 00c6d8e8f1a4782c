"""The kernel's account of who had a core."""

from __future__ import annotations

import os
import time

from gateway_plugin.verify.core_times import busy_in, busy_s, cpu_s

STAT = """\
cpu  60 60 60 60 60 60 60 60 60 0
cpu0 100 20 30 5000 400 6 7 8 90 0
cpu1 200 20 30 5000 400 6 7 8 90 0
cpu10 900 20 30 5000 400 6 7 8 90 0
intr 1 2 3
"""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def test_idle_time_waiting_for_disks_and_guests_twice_are_no_busy_time() -> None:
    assert busy_in(STAT, {0}) == 171 / TICKS_PER_S
    assert busy_in(STAT, {0, 1}) == (171 + 271) / TICKS_PER_S
    assert busy_in(STAT, set()) == 0


def test_what_this_process_computes_is_in_its_account_and_in_its_cores() -> None:
    cores = os.sched_getaffinity(0)
    own_s, all_s = cpu_s(os.getpid()), busy_s(cores)
    started_s = time.process_time()
    while time.process_time() - started_s < 0.1:
        pass
    assert cpu_s(os.getpid()) - own_s >= 0.08
    assert busy_s(cores) - all_s >= 0.08


def test_a_process_that_is_gone_has_none() -> None:
    assert cpu_s(2**22 + 1) == 0
