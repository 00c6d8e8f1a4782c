"""One supervised process: start, adopt, watch, restart with backoff, stop."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.paths import Paths
from gateway_plugin.processes import ProcessId, identify, spawn
from gateway_plugin.supervisor.protocol import ProcessStatus

log = logging.getLogger(__name__)
FIRST_BACKOFF_S = 0.05
FAILED_PROBES = 4
STEADY_AFTER_S = 10.0
"""A process that ran this long is taken as healthy: its next restart is immediate again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildSpec:
    """What to run. A listener, once opened, is passed as `--listen-fd N`."""

    name: str
    argv: tuple[str, ...]
    open_listener: Callable[[], socket.socket] | None = None
    heartbeat_limit_s: float | None = None
    """Silence after which it counts as stuck; None: it gives no heartbeat."""
    probe: Callable[[], bool] | None = None
    """A question whose answer shows life, for a program that gives no heartbeat; may block, runs in a thread."""
    stop_timeout_s: float = 10.0


class _Record(msgspec.Struct, frozen=True):
    """What is left on disk, so that the next supervisor can adopt the process."""

    process: ProcessId
    argv: tuple[str, ...]
    started_at: float


class Child:
    """State of one supervised process; lives in the supervisor's event loop."""

    def __init__(self, spec: ChildSpec, *, paths: Paths, env: Mapping[str, str], backoff_max_s: float) -> None:
        self.spec = spec
        self.popen: subprocess.Popen[bytes] | None = None
        self.listener: socket.socket | None = None
        self.heartbeat = Heartbeat(paths.processes / f"{spec.name}.beat")
        self._paths, self._env, self._backoff_max_s = paths, env, backoff_max_s
        self._record_path = paths.processes / f"{spec.name}.json"
        self._process: ProcessId | None = None
        self._pidfd: int | None = None
        self._started_at = 0.0
        self._gone = asyncio.Event()
        self._gone.set()
        self._stopping = False
        self._adopted = False
        self._restarts = 0
        self._backoff_s = 0.0
        self._last_exit = ""
        self._failed_probes = 0

    @property
    def running(self) -> bool:
        return self._process is not None

    def begin(self) -> None:
        """Adopt the process an earlier supervisor left, else start one."""
        if not self._adopt():
            self._start()

    def offer(self, listener: socket.socket) -> None:
        """Take the listener of an adopted process, unless there is one already."""
        if self.listener is None:
            self.listener = listener
        else:
            listener.close()

    def check_heartbeat(self) -> None:
        """Kill it if it has been silent too long; its end is then noticed like any other."""
        limit_s, age_s = self.spec.heartbeat_limit_s, self.heartbeat.age_s()
        if self._process is None or limit_s is None or age_s is None or age_s <= limit_s:
            return
        log.error("%s: no sign of life for %.1f s, allowed %.1f s: killing it", self.spec.name, age_s, limit_s)
        self._process.send_to_session(signal.SIGKILL)

    async def check_probe(self) -> None:
        """Kill it if its probe failed several times in a row."""
        process, probe = self._process, self.spec.probe
        if process is None or probe is None:
            return
        self._failed_probes = 0 if await asyncio.to_thread(probe) else self._failed_probes + 1
        if self._failed_probes >= FAILED_PROBES and process == self._process:
            log.error("%s: %d probes in a row failed: killing it", self.spec.name, self._failed_probes)
            self._failed_probes = 0
            process.send_to_session(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM, then SIGKILL after the spec's time; returns when it is gone. It is not restarted."""
        self._stopping = True
        if self._process is not None:
            self._process.send(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._gone.wait(), self.spec.stop_timeout_s)
            except TimeoutError:
                log.error("%s: did not stop within %.0f s: killing it", self.spec.name, self.spec.stop_timeout_s)
                self._process.send_to_session(signal.SIGKILL)
                await self._gone.wait()
        self._record_path.unlink(missing_ok=True)
        self.heartbeat.forget()
        if self.listener is not None:
            self.listener.close()
            self.listener = None

    def status(self) -> ProcessStatus:
        state = "running" if self.running else "stopped" if self._stopping else "waiting"
        return ProcessStatus(
            name=self.spec.name,
            state=state,
            pid=self._process.pid if self._process else 0,
            uptime_s=round(time.time() - self._started_at, 1) if self.running else 0.0,
            restarts=self._restarts,
            adopted=self._adopted,
            last_exit=self._last_exit,
        )

    def _adopt(self) -> bool:
        try:
            record = msgspec.json.decode(self._record_path.read_bytes(), type=_Record)
        except (FileNotFoundError, msgspec.MsgspecError):
            return False
        pidfd = record.process.open_pidfd()
        if pidfd is None:
            return False
        log.info("%s: adopted, pid %d", self.spec.name, record.process.pid)
        self._adopted = True
        self._watch(record.process, pidfd, started_at=record.started_at)
        return True

    def _start(self) -> None:
        try:
            self.popen = self._spawn()
        except OSError as error:
            self._ended(f"cannot be started: {error}")
            return
        process = identify(self.popen.pid)
        pidfd = process.open_pidfd() if process else None
        if process is None or pidfd is None:
            self._ended(f"ended at once with code {self.popen.wait()}")
            return
        self._adopted = False
        self._watch(process, pidfd, started_at=time.time())
        record = _Record(process, self.spec.argv, self._started_at)
        self._record_path.write_bytes(msgspec.json.encode(record))
        log.info("%s: started, pid %d", self.spec.name, process.pid)

    def _spawn(self) -> subprocess.Popen[bytes]:
        argv, descriptors = list(self.spec.argv), []
        if self.spec.open_listener is not None:
            if self.listener is None:
                self.listener = self.spec.open_listener()
            descriptors = [self.listener.fileno()]
            argv += ["--listen-fd", str(descriptors[0])]
        self.heartbeat.forget()
        log_path = self._paths.logs / f"{self.spec.name}.log"
        return spawn(argv, env=self._env, log=log_path, cwd=Path("/"), pass_fds=descriptors)

    def _watch(self, process: ProcessId, pidfd: int, *, started_at: float) -> None:
        self._process, self._pidfd, self._started_at = process, pidfd, started_at
        self._gone.clear()
        asyncio.get_running_loop().add_reader(pidfd, self._on_exit)

    def _on_exit(self) -> None:
        assert self._pidfd is not None
        asyncio.get_running_loop().remove_reader(self._pidfd)
        os.close(self._pidfd)
        ran_s = time.time() - self._started_at
        if ran_s >= STEADY_AFTER_S:
            self._backoff_s = 0.0
        # An adopted process is nobody's child here, so its exit code is not to be had.
        code = self.popen.wait() if self.popen is not None and not self._adopted else None
        self._process = self._pidfd = self.popen = None
        self._ended(_exit_text(code))

    def _ended(self, how: str) -> None:
        self._last_exit = how
        self._gone.set()
        if self._stopping:
            log.info("%s: %s", self.spec.name, how)
            return
        delay_s, self._backoff_s = self._backoff_s, min(self._backoff_max_s, self._backoff_s * 2 or FIRST_BACKOFF_S)
        log.warning("%s: %s; starting it again in %.2f s", self.spec.name, how, delay_s)
        asyncio.get_running_loop().call_later(delay_s, self._restart)

    def _restart(self) -> None:
        if not self._stopping and self._process is None:
            self._restarts += 1
            self._start()


def _exit_text(code: int | None) -> str:
    if code is None:
        return "ended"
    return f"killed by signal {-code}" if code < 0 else f"exited with code {code}"
