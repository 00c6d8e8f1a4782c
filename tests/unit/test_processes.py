"""Processes by identity."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway_plugin.processes import ProcessId, identify, reap_orphans, set_niceness, spawn

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_process_is_known_by_pid_and_start_time_until_it_ends(tmp_path: Path) -> None:
    popen = spawn(SLEEPER, env=os.environ, log=tmp_path / "log")
    process = identify(popen.pid)
    assert process is not None
    assert process.alive()
    pidfd = process.open_pidfd()
    assert pidfd is not None
    assert process.send(signal.SIGKILL)
    assert select.select([pidfd], [], [], 30)[0]
    assert not process.alive(), "a zombie is not alive"
    assert popen.wait() == -signal.SIGKILL
    assert not process.send(signal.SIGTERM)
    os.close(pidfd)


def test_another_process_with_the_same_pid_is_a_stranger() -> None:
    me = identify(os.getpid())
    assert me is not None
    later = ProcessId(me.pid, me.start_ticks + 1, me.boot_id)
    after_a_reboot = ProcessId(me.pid, me.start_ticks, "another-boot")
    for stranger in (later, after_a_reboot):
        assert not stranger.alive()
        assert stranger.open_pidfd() is None
        assert not stranger.send(signal.SIGKILL)


def test_what_a_leader_left_in_its_session_is_killed_but_never_strangers_under_its_number(tmp_path: Path) -> None:
    script = "import subprocess, sys; subprocess.Popen(sys.argv[1:], stdout=sys.stdout); sys.stdin.read()"
    code = "import time; print('up', flush=True); time.sleep(600)"
    command = [sys.executable, "-c", script, sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as leader:
        assert leader.stdout is not None
        assert leader.stdout.readline() == b"up\n"
        process = identify(leader.pid)
        assert process is not None
        for earlier in (
            ProcessId(process.pid, process.start_ticks - 1, process.boot_id),
            ProcessId(process.pid, process.start_ticks, "another-boot"),
        ):
            earlier.kill_rest_of_session()
            assert leader.poll() is None
        leader.kill()
        leader.wait()
        process.kill_rest_of_session()
        assert leader.stdout.read() == b"", "the end of its child, which had the pipe open too"


def test_output_is_appended_to_the_log_and_nothing_else_is_inherited(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    code = f"import os; print('hello'); os.write({write_end}, b'x')"
    os.set_inheritable(write_end, True)
    popen = spawn([sys.executable, "-c", code], env=os.environ, log=tmp_path / "log")
    assert popen.wait() != 0
    text = (tmp_path / "log").read_text()
    assert "hello" in text
    assert "Bad file descriptor" in text
    os.close(read_end)
    os.close(write_end)


def test_a_program_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        spawn(["/no-such-program"], env={}, log=tmp_path / "log")


def test_all_children_are_killed_and_what_they_leave_behind_with_them() -> None:
    code = (
        "import ctypes, subprocess, sys; from gateway_plugin.processes import kill_children\n"
        "ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # inherits orphans, as the supervisor does\n"
        "deep = [sys.executable, '-c', 'import time; print(1, flush=True); time.sleep(600)']\n"
        "middle = f'import subprocess; subprocess.Popen({deep!r}, start_new_session=True).wait()'\n"
        "subprocess.Popen([sys.executable, '-c', middle])\n"
        "sys.stdin.readline()\n"
        "kill_children()\n"
        "print('done', flush=True)\n"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdin is not None
        assert parent.stdout.readline() == b"1\n"
        parent.stdin.write(b"\n")
        parent.stdin.flush()
        assert parent.stdout.read() == b"done\n", "read to its end: nobody else has the pipe open"
    assert parent.returncode == 0


def test_dead_children_are_reaped_and_keep_their_exit_code() -> None:
    known = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])
    os.waitid(os.P_PID, known.pid, os.WEXITED | os.WNOWAIT)
    reap_orphans({known.pid: known})
    assert known.returncode == 3


def test_a_nice_process_is_nice_to_other_sessions_too(tmp_path: Path) -> None:
    popen = spawn(SLEEPER, env=os.environ, log=tmp_path / "log")
    group = Path(f"/proc/{popen.pid}/autogroup")
    try:
        if not group.exists() or not group.read_text().strip():
            pytest.skip("this kernel has no autogroups")
        name = group.read_text().split()[0]

        set_niceness(popen.pid, 10)

        assert os.getpriority(os.PRIO_PROCESS, popen.pid) == 10
        wait_for(lambda: group.read_text().split() == [name, "nice", "10"])
    finally:
        popen.kill()
        popen.wait()


def test_a_process_in_somebody_elses_session_leaves_that_as_it_is() -> None:
    with subprocess.Popen(SLEEPER) as popen:
        group = Path("/proc/self/autogroup")
        before = group.read_text() if group.exists() else ""

        set_niceness(popen.pid, 10)

        assert os.getpriority(os.PRIO_PROCESS, popen.pid) == 10
        assert (group.read_text() if group.exists() else "") == before
        popen.kill()


def test_the_niceness_of_a_process_that_has_ended_cannot_be_set() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as popen:
        popen.wait()
    with pytest.raises(ProcessLookupError):
        set_niceness(popen.pid, 10)


def wait_for(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("it did not come to that")
