"""Processes by identity, not by number: pid and start time, so that a reused pid is never mistaken.

Works for children and for strangers alike (an adopted process is not a child), through pidfd.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")

NICENESS_RETRY_S = 0.1
NICENESS_TRIES = 100


class ProcessId(msgspec.Struct, frozen=True):
    """One process of this boot; equal only to itself."""

    pid: int
    start_ticks: int
    """Field 22 of /proc/PID/stat: clock ticks after boot."""
    boot_id: str
    """Which boot: after the next one, the same numbers are somebody else's."""

    def alive(self) -> bool:
        """Whether it still runs; a zombie does not."""
        stat = read_stat(self.pid)
        return (
            stat is not None
            and stat.state not in "ZX"
            and stat.start_ticks == self.start_ticks
            and self.boot_id == this_boot_id()
        )

    def open_pidfd(self) -> int | None:
        """A descriptor that becomes readable when it ends; None if it already did. The caller closes it."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return None
        if self.alive():
            return descriptor
        os.close(descriptor)
        return None

    def send(self, number: signal.Signals) -> bool:
        """Send a signal to this very process; False if it is gone."""
        descriptor = self.open_pidfd()
        if descriptor is None:
            return False
        try:
            signal.pidfd_send_signal(descriptor, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(descriptor)
        return True

    def send_to_session(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group that it leads, if it still lives."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def kill_rest_of_session(self) -> None:
        """SIGKILL what it left in its process group, once it has ended itself.

        Its number may by now be somebody else's, above all after a reboot: then nothing is sent. As long as something
        of its own is left in the group, the kernel gives the number to nobody.
        """
        stat = read_stat(self.pid)
        if self.boot_id == this_boot_id() and (stat is None or stat.start_ticks == self.start_ticks):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


def identify(pid: int) -> ProcessId | None:
    """The identity of a running process, None if there is none of that number."""
    stat = read_stat(pid)
    return None if stat is None else ProcessId(pid, stat.start_ticks, this_boot_id())


@cache
def this_boot_id() -> str:
    """The kernel's own name for the time since the machine started."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


class ProcessStat(NamedTuple):
    """What /proc/PID/stat says, of what is used here."""

    state: str
    """One letter."""
    parent: int
    session: int
    start_ticks: int
    own_s: float
    """CPU time of all its threads."""
    waited_s: float
    """CPU time of its descendants that have ended and were waited for, each by its parent."""


def read_stat(pid: int) -> ProcessStat | None:
    """None if there is no process of that number, or none that may be looked at."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = text[text.rindex(")") + 2 :].split()
    user, system, waited_user, waited_system = (int(field) / _TICKS_PER_S for field in fields[11:15])
    return ProcessStat(
        state=fields[0],
        parent=int(fields[1]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        own_s=user + system,
        waited_s=waited_user + waited_system,
    )


def read_stats() -> dict[int, ProcessStat]:
    """Of every process that can be seen, by its number."""
    pids = [int(folder.name) for folder in Path("/proc").iterdir() if folder.name.isdigit()]
    return {pid: stat for pid in pids if (stat := read_stat(pid)) is not None}


def spawn(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    log: Path,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own, its output appended to `log`, nothing else inherited.

    Raises:
        OSError: the program or the folder does not exist.
    """
    with log.open("ab") as output:
        return subprocess.Popen(
            argv,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=pass_fds,
            start_new_session=True,
        )


def set_niceness(pid: int, niceness: int) -> None:
    """Give a process this niceness. Raises: OSError: it has ended, or is somebody else's.

    A kernel with autogroups divides a core among sessions first, and looks at niceness only within a session. So one
    that the process leads is told too. Users other than root may do that ten times a second: it may come a bit later.
    """
    os.setpriority(os.PRIO_PROCESS, pid, niceness)
    if not _set_session_niceness(pid, niceness):
        threading.Thread(target=_keep_trying, args=(pid, niceness), name="niceness", daemon=True).start()


def _keep_trying(pid: int, niceness: int) -> None:
    for _ in range(NICENESS_TRIES):
        time.sleep(NICENESS_RETRY_S)
        if _set_session_niceness(pid, niceness):
            return


def _set_session_niceness(pid: int, niceness: int) -> bool:
    """False: not now, try again."""
    try:
        if os.getsid(pid) != pid:
            return True
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
    except BlockingIOError:
        return False
    except OSError:  # a kernel without autogroups, or the process has ended
        return True
    return True


def reap_orphans(known: Mapping[int, subprocess.Popen[bytes]]) -> None:
    """Collect every dead child: our own through their Popen, those inherited as subreaper directly."""
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None:
            return
        process = known.get(found.si_pid)
        if process is not None:
            process.wait()
        else:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(found.si_pid, 0)


def kill_children() -> None:
    """SIGKILL every child of this process and wait for it, those included that it inherits meanwhile as subreaper."""
    while children := _children(os.getpid()):
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)


def hold_to_cores(pid: int, cores: Iterable[int]) -> None:
    """Let a process and all it has started, with every thread, run on these cores only; what they start inherits it.

    Raises:
        OSError: the system does not allow it. A process or thread that has just ended is none.
    """
    wanted = set(cores)
    for member in with_descendants([pid], read_stats()):
        for thread in _threads(member):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread, wanted)


def _threads(pid: int) -> list[int]:
    try:
        return [int(entry.name) for entry in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def with_descendants(pids: Iterable[int], stats: Mapping[int, ProcessStat]) -> set[int]:
    """These processes and all that descend from them."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for pid, stat in stats.items():
        children[stat.parent].append(pid)
    found: set[int] = set()
    fresh = list(pids)
    while fresh:
        pid = fresh.pop()
        if pid not in found:
            found.add(pid)
            fresh.extend(children[pid])
    return found


def children_of(pid: int) -> list[ProcessId]:
    """The processes whose parent is that one, at this moment."""
    return [process for child in _children(pid) if (process := identify(child)) is not None]


def _children(parent: int) -> list[int]:
    return [pid for pid, stat in read_stats().items() if stat.parent == parent]


def python_command(*arguments: str) -> list[str]:
    """This interpreter running the `gshare` command."""
    return [sys.executable, "-m", "gateway_plugin.cli", *arguments]
