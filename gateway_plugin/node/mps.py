"""One control daemon of CUDA's Multi-Process Service (MPS), for one device, owned by this agent.

Facts from NVIDIA's text: the daemon goes to the background with `-d` and writes its number into its pipe directory;
commands reach it through the same program on standard input; it starts a server when the first client comes, under
that client's user. Nothing here touches clocks, compute mode, MIG, or the daemon's default percentage.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway_plugin.errors import MpsUnavailable
from gateway_plugin.logfiles import tail
from gateway_plugin.model import Device
from gateway_plugin.node.mps_control import ControlFailed, ask, launch, without_mps_settings
from gateway_plugin.node.mps_env import daemon_environment
from gateway_plugin.processes import ProcessId, children_of, identify

log = logging.getLogger(__name__)
PROGRAM = "nvidia-cuda-mps-control"
PID_FILE = f"{PROGRAM}.pid"
FAULT = "FAULT"
INSTALL = "install the driver's compute utilities, which have nvidia-cuda-mps-control"
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class MpsLimits:
    """How long the daemon may take."""

    command_s: float = 1.5
    """For the answer to one command."""
    launch_s: float = 2.5
    """For `-d` to return."""
    answer_s: float = 2.5
    """From there until it is asked for the last time."""
    quit_s: float = 3.0
    """For servers to end by themselves when told to quit."""
    kill_s: float = 0.5
    """For what was killed to be gone."""

    @property
    def longest_start_s(self) -> float:
        """One that hangs is found and killed, its successor does not answer either and is killed, too."""
        return self.command_s + self.launch_s + self.answer_s + self.command_s + 3 * self.kill_s


@dataclass(frozen=True, slots=True)
class MpsClient:
    """One process that computes through a server."""

    server: int
    pid: int


class MpsDaemon:
    """Start, stop and question one daemon. Every failure is MpsUnavailable, in bounded time."""

    def __init__(
        self,
        device: Device,
        *,
        pipes: Path,
        logs: Path,
        program: str = PROGRAM,
        limits: MpsLimits | None = None,
        uid: int | None = None,
    ) -> None:
        """`uid`: whose processes the clients are; default: this process's own."""
        self.device, self.pipes, self.logs = device, pipes, logs
        self._program = program
        self._limits = limits or MpsLimits()
        self._uid = os.getuid() if uid is None else uid

    def exists(self) -> bool:
        """Whether a daemon was started here and has not quit; it may be dead."""
        return (self.pipes / PID_FILE).exists()

    async def start(self, *, replace: bool) -> None:
        """Take over the daemon that answers at the pipe directory, else start one.

        Args:
            replace: no client is left, so that one that does not answer may be killed.

        Raises:
            MpsUnavailable: absent, refused, hanging, late, or of another user; the text names directory and remedy.
        """
        self._make_directories()
        if self._process() is not None:
            try:
                await self.check()
                return
            except MpsUnavailable:
                if not replace:
                    raise
                await self._kill(self._family())
        try:
            await self._launch()
        except MpsUnavailable:
            await self._kill(self._family())
            raise

    async def stop(self) -> None:
        """`quit`, then SIGKILL for what is left; never fails. Clients that are left lose their device."""
        family = self._family()
        if not family:
            return
        try:
            await self.command(f"quit -t {self._limits.quit_s:.0f}", limit_s=self._limits.quit_s + 1)
            await _gone(family, self._limits.quit_s)
        except MpsUnavailable as error:
            log.info("it did not quit and is killed: %s", error)
        await self._kill(family)

    async def restart(self) -> None:
        """A new daemon in place of this one. Raises: MpsUnavailable, also when a client is left."""
        try:
            left = await self.clients()
        except MpsUnavailable:
            left = ()  # it does not answer: nobody can compute through it
        if left:
            pids = ", ".join(str(client.pid) for client in left)
            raise self._unavailable(f"clients are left ({pids}), a restart would end them", "stop them first")
        await self.stop()
        await self.start(replace=True)

    async def check(self) -> None:
        """The health question. Raises: MpsUnavailable."""
        await self.servers()

    async def servers(self) -> tuple[int, ...]:
        """Numbers of its server processes: none before the first client, one after."""
        return _numbers(await self.command("get_server_list"))

    async def clients(self) -> tuple[MpsClient, ...]:
        """Every client of every server."""
        found: list[MpsClient] = []
        for server in await self.servers():
            pids = _numbers(await self.command(f"get_client_list {server}"))
            found.extend(MpsClient(server, pid) for pid in pids)
        return tuple(found)

    async def faulted_servers(self) -> tuple[int, ...]:
        """Servers that say they are in state FAULT; drivers that do not know the question have none."""
        states = {server: await self.command(f"get_server_status {server}") for server in await self.servers()}
        return tuple(server for server, state in states.items() if FAULT in state.upper())

    async def terminate(self, client: MpsClient) -> None:
        """End a client's work on the device and free its contexts; its process lives on. Raises: MpsUnavailable."""
        await self.command(f"terminate_client {client.server} {client.pid}")

    async def command(self, text: str, *, limit_s: float | None = None) -> str:
        """Its answer to one command; everything that is said to it goes through here. Raises: MpsUnavailable."""
        limit_s = self._limits.command_s if limit_s is None else limit_s
        try:
            return await ask(self._program, text, env=self._environment(), limit_s=limit_s)
        except ControlFailed as error:
            raise self._unavailable(str(error), self._remedy(error)) from error

    def log_tail(self, *, lines: int = 5) -> str:
        """The last lines of its own log and of its servers'."""
        parts = (tail(self.logs / name, lines=lines) for name in ("control.log", "server.log"))
        return "\n".join(part for part in parts if part)

    async def _launch(self) -> None:
        try:
            await launch(
                self._program,
                env=self._environment(),
                output=self.logs / "start.log",
                limit_s=self._limits.launch_s,
            )
        except ControlFailed as error:
            raise self._unavailable(str(error), self._remedy(error)) from error
        deadline = time.monotonic() + self._limits.answer_s
        while True:
            try:
                await self.check()
                return
            except MpsUnavailable:
                if time.monotonic() >= deadline:
                    raise
            await asyncio.sleep(_POLL_S)

    def _make_directories(self) -> None:
        """Raises: MpsUnavailable if somebody else's are there, since a daemon serves one user only."""
        try:
            self.pipes.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise self._unavailable(f"cannot make {error.filename}: {error.strerror}", "free that name") from error
        owner = self.pipes.stat().st_uid
        if owner != self._uid:
            raise self._unavailable(
                f"it belongs to user {owner}, but clients run as user {self._uid}, and a daemon serves one user",
                "run the agent as that user, or remove the directory once its daemon has quit",
            )

    def _process(self) -> ProcessId | None:
        """The daemon itself: the number in its file, if that process was started for this very directory."""
        try:
            pid = int((self.pipes / PID_FILE).read_text())
            environ = Path(f"/proc/{pid}/environ").read_bytes()
        except (OSError, ValueError):
            return None
        ours = os.fsencode(f"CUDA_MPS_PIPE_DIRECTORY={self.pipes}") in environ.split(b"\0")
        return identify(pid) if ours else None

    def pids(self) -> frozenset[int]:
        """Of the daemon and its servers."""
        return frozenset(process.pid for process in self._family())

    def _family(self) -> list[ProcessId]:
        """The daemon and its servers; none if it does not run."""
        process = self._process()
        return [] if process is None else [process, *children_of(process.pid)]

    async def _kill(self, family: list[ProcessId]) -> None:
        """SIGKILL them, wherever they hang. Nothing happens to clients' processes."""
        for process in family:
            process.send(signal.SIGKILL)
        await _gone(family, self._limits.kill_s)
        (self.pipes / PID_FILE).unlink(missing_ok=True)

    def _environment(self) -> Mapping[str, str]:
        return without_mps_settings(os.environ) | daemon_environment(self.device, pipes=self.pipes, logs=self.logs)

    def _unavailable(self, what: str, remedy: str) -> MpsUnavailable:
        return MpsUnavailable(f"MPS for {self.device.id} (pipe directory {self.pipes}): {what}", remedy=remedy)

    def _remedy(self, error: ControlFailed) -> str:
        return (
            INSTALL
            if error.absent
            else f"see {self.logs}/control.log, then restart the agent; GSHARE_MPS=off does without"
        )


async def _gone(processes: list[ProcessId], limit_s: float) -> None:
    """Wait until none of them runs, or the time is over."""
    deadline = time.monotonic() + limit_s
    while any(one.alive() for one in processes) and time.monotonic() < deadline:
        await asyncio.sleep(_POLL_S)


def _numbers(answer: str) -> tuple[int, ...]:
    """The numbers of a list answer, one a line; other lines are remarks."""
    return tuple(int(line) for line in answer.split() if line.isdecimal())
