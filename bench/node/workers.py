"""Starts the benchmark's processes as the agent starts replicas, and talks to them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from gshare.config import ReplicaConfig
from gshare.device import cores_of
from gshare.wire import Channel, WireError

from bench.figures import BenchError
from bench.node.jobs import Failed, FromWorker, Loaded, Ran, Run, ToWorker, Weighed
from gateway_plugin.node.spawner import REPLICA_NICENESS
from gateway_plugin.processes import hold_to_cores, set_niceness

AnswerT = TypeVar("AnswerT", Loaded, Ran, Weighed)
NO_ENV: Mapping[str, str] = {}
ROOT = Path(__file__).parent.parent.parent
START_S = 120.0
SLACK_S = 60.0
"""How much longer than its run a worker may take to answer."""
LEAD_S = 0.1
"""From telling workers to run until they do, so that all begin together."""


@dataclass(frozen=True, slots=True)
class Passes:
    """The passes of one worker's run."""

    start_s: float
    """When it was to begin."""
    asked_s: tuple[float, ...]
    ended_s: tuple[float, ...]

    def between(self, from_s: float, until_s: float) -> float:
        """Passes in that part of the run, seconds after its start; one that is cut by an end counts by its part."""
        return sum(
            _overlap(asked_s - self.start_s, ended_s - self.start_s, from_s=from_s, until_s=until_s)
            for asked_s, ended_s in zip(self.asked_s, self.ended_s, strict=True)
        )


class Worker:
    """One process; not ready before `wait_loaded`."""

    def __init__(self, config: ReplicaConfig, names: Sequence[str], *, env: Mapping[str, str]) -> None:
        """`env`: besides what a replica is told."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.node.worker", str(theirs.fileno()), ",".join(names)],
                cwd=ROOT,
                env=_environment(config) | dict(env),
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        hold_to(self._process.pid, config)
        self._channel: Channel[FromWorker] = Channel(ours, FromWorker)
        self._channel.set_timeout(START_S)
        self._run: Run | None = None

    def wait_loaded(self) -> None:
        """Raises: BenchError: it cannot load."""
        self._expect(Loaded)

    def begin(self, model: str, *, run_s: float, start_s: float) -> None:
        """Let it run; `ran` waits for the end."""
        self._run = Run(model, start_s, run_s)
        self._channel.set_timeout(run_s + SLACK_S)
        self._channel.send(self._run)

    def ran(self) -> Passes:
        """What came of the last `begin`. Raises: BenchError: the process is gone, or does not end."""
        assert self._run is not None
        answer = self._expect(Ran)
        return Passes(self._run.start_s, answer.asked_s, answer.ended_s)

    def ask(self, job: ToWorker, kind: type[AnswerT]) -> AnswerT:
        """Another job than a run. Raises: BenchError."""
        self._channel.send(job)
        return self._expect(kind)

    def close(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._channel.close()

    def _expect(self, kind: type[AnswerT]) -> AnswerT:
        try:
            answer = self._channel.receive()
        except WireError as error:
            raise BenchError(f"a process of the benchmark has ended or hangs: {error}") from error
        if isinstance(answer, Failed):
            raise BenchError(f"a process of the benchmark cannot go on: {answer.reason}")
        assert isinstance(answer, kind), answer
        return answer


def started(
    stack: ExitStack, configs: Sequence[ReplicaConfig], *, models: Sequence[str], env: Mapping[str, str] = NO_ENV
) -> list[Worker]:
    """A loaded worker for each; they end with the stack. Raises: BenchError."""
    made = []
    for config in configs:
        worker = Worker(config, models, env=env)
        stack.callback(worker.close)
        made.append(worker)
    for worker in made:
        worker.wait_loaded()
    return made


def run_together(workers: Sequence[Worker], model: str, *, run_s: float) -> list[Passes]:
    """The same run in all of them at the same time. Raises: BenchError."""
    start_s = time.monotonic() + LEAD_S
    for worker in workers:
        worker.begin(model, run_s=run_s, start_s=start_s)
    return [worker.ran() for worker in workers]


def hold_to(pid: int, config: ReplicaConfig) -> None:
    """What the agent does to a process that it has just started: its cores, and a place behind the gateway."""
    set_niceness(pid, REPLICA_NICENESS)
    hold_to_cores(pid, cores_of(config.cpus))


def _environment(config: ReplicaConfig) -> dict[str, str]:
    inherited = {key: text for key, text in os.environ.items() if not key.startswith("GSHARE_")}
    return inherited | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""} | config.to_env()


def _overlap(begin_s: float, end_s: float, *, from_s: float, until_s: float) -> float:
    inside_s = min(end_s, until_s) - max(begin_s, from_s)
    return max(0.0, inside_s) / (end_s - begin_s) if end_s > begin_s else float(from_s <= begin_s < until_s)
