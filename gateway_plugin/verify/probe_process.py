"""A probe as a child process: started, asked, and ended whatever happens."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import TypeVar

import msgspec
from gshare.wire import Message

from gateway_plugin.errors import ProbeFailed
from gateway_plugin.probe_protocol import PROBE_ANSWER, ProbeAnswer, ProbeRequest, Ran, Run, Unable

MODULE = "gateway_plugin.node.probe"
NOT_INHERITED = ("GSHARE_", "CUDA_MPS_")
"""Settings of the installation, and those of an MPS daemon that is not ours, are none of a probe's."""
START_S = 60.0
"""Longest time until a probe can compute; importing torch on a busy machine takes most of it."""
LATE_S = 20.0
"""Longest time that an answer may come after what was asked is over."""
END_S = 5.0
AnswerT = TypeVar("AnswerT", bound=Message)


class ProbeProcess:
    """One probe. Every failure is ProbeFailed, with the last line that it said on its standard error."""

    def __init__(self, name: str, *, env: Mapping[str, str] | None = None) -> None:
        """Start it in a session of its own; it waits for its first request. `env`: what its device needs."""
        self.name = name
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(NOT_INHERITED)}
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed in `close`
        self._process = subprocess.Popen(
            [sys.executable, "-m", MODULE],
            env=inherited | dict(env or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        self._buffer = bytearray()

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, request: ProbeRequest, kind: type[AnswerT], *, timeout_s: float = START_S) -> AnswerT:
        """Its answer. Raises: ProbeFailed."""
        self.send(request)
        return self.receive(kind, timeout_s=timeout_s)

    def ran(self, request: Run) -> Ran:
        """The answer to a Run that was sent. Raises: ProbeFailed."""
        return self.receive(Ran, timeout_s=max(0.0, request.end_s - time.monotonic()) + LATE_S)

    def send(self, request: ProbeRequest) -> None:
        """Ask, and let it get on with it. Raises: ProbeFailed when it has ended."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(msgspec.json.encode(request) + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._failed("it has ended") from error

    def receive(self, kind: type[AnswerT], *, timeout_s: float) -> AnswerT:
        """Its next answer. Raises: ProbeFailed: it is unable, late or gone."""
        answer = self._next(time.monotonic() + timeout_s)
        if isinstance(answer, Unable):
            raise ProbeFailed(f"{self.name}: {answer.reason}")
        assert isinstance(answer, kind), f"{self.name} answered {type(answer).__name__}, not {kind.__name__}"
        return answer

    def close(self) -> None:
        """Let it finish its block, then end it and whatever it started."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(END_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _next(self, until_s: float) -> ProbeAnswer:
        while b"\n" not in self._buffer:
            self._read(until_s)
        line, _, rest = self._buffer.partition(b"\n")
        self._buffer = bytearray(rest)
        return PROBE_ANSWER.decode(line)

    def _read(self, until_s: float) -> None:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], max(0.0, until_s - time.monotonic()))[0]:
            raise self._failed("it does not answer")
        data = os.read(descriptor, 65536)
        if not data:
            raise self._failed(f"it ended with code {self._process.wait()}")
        self._buffer += data

    def _failed(self, what: str) -> ProbeFailed:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        return ProbeFailed(f"{self.name}: {what}" + (f": {lines[-1]}" if lines else ""))
