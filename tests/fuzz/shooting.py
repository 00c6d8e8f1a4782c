"""Shots at a real replica, and what must hold after them: no 5xx, the same process, memory as before, right answers."""

from __future__ import annotations

import http.client
import json
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from tests.fuzz.shot import Shot
from tests.fuzz.shots import shot
from tests.replica_process import ReplicaProcess, replica
from tests.tiny_functions import TinyFunction
from tests.unix_http import Answer, UnixConnection

CLIENTS = 4
ROUND = 100
"""Shots between two good requests."""
GROWTH_BYTES = 64 * 2**20
"""Most by which a replica's memory may grow from its first rounds to its last; in a run of 3,500
shots a leak of 24 kB a body is beyond it."""
PEAK_BYTES = 1024 * 2**20
"""Most that shots may take for themselves while they are answered, all clients together."""
PATIENCE_S = 600
"""For one answer: full models on one core are slow, which is not what is asked here."""
SETTINGS = {
    "GSHARE_MAX_BATCH": "8",
    "GSHARE_MAX_BATCH_DELAY_MS": "2",
    "GSHARE_CPUS": str(min(os.sched_getaffinity(0))),
    "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "128",
    "MALLOC_MMAP_THRESHOLD_": str(4 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(8 * 2**20),
    "exec_timeout": f"{PATIENCE_S}s",
}
"""Settings of the replica. One core, since threads that wait for each other are most of what a tiny model costs.

What grows shall be a leak. torch keeps 1,024 compiled shapes, 100 MiB for gnmt, before it forgets any; here fewer. The
C library keeps up to 64 MB of what was freed in each of its two pools, which came and went by 40 MiB from one look to
the next; here it gives large blocks back at once. Deployed replicas keep both, since they compute faster with them."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A shot that was not answered as it must be."""

    number: int
    shot: Shot
    reason: str


@dataclass(slots=True)
class Result:
    """What came of the shots at one function."""

    function: str
    shots: int = 0
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By kind of shot and status; status 0: no answer."""
    failures: list[Failure] = field(default_factory=list)
    before_bytes: int = 0
    after_bytes: int = 0
    peak_bytes: int = 0
    same_process: bool = False
    good: int = 0
    """Good requests that were answered as before the first shot."""
    good_asked: int = 0
    seconds: float = 0.0
    last_words: str = ""
    """The log's end of a replica that did not outlive the shots."""

    @property
    def complaints(self) -> list[str]:
        """Everything that does not hold; empty if all does."""
        found = [f"shot {one.number} ({one.shot.kind}): {one.reason}" for one in self.failures]
        if not self.same_process:
            found.append(f"the serving process ended: {self.last_words}")
        if self.good != self.good_asked:
            found.append(f"{self.good_asked - self.good} of {self.good_asked} good requests got another answer")
        grown, peak = self.after_bytes - self.before_bytes, self.peak_bytes - self.before_bytes
        if grown > GROWTH_BYTES:
            found.append(f"memory grew by {grown / 2**20:.0f} MiB; at most {GROWTH_BYTES / 2**20:.0f}")
        if peak > PEAK_BYTES:
            found.append(f"memory rose by {peak / 2**20:.0f} MiB; at most {PEAK_BYTES / 2**20:.0f}")
        return found


def shoot(function: TinyFunction, *, seed: int, numbers: range, env: Mapping[str, str]) -> Result:
    """Send these shots to a fresh replica of `function`."""
    result = Result(function.name)
    started_s = time.monotonic()
    with ExitStack() as stack:
        process = stack.enter_context(replica(function.folder, env))
        process.wait_ready()
        pid = int(process.status()["pid"])
        clients = [stack.enter_context(closing(_Client(process))) for _ in range(CLIENTS)]
        try:
            _fire(_Gallery(clients, function, seed=seed, result=result), numbers, pid)
            result.same_process = int(process.status()["pid"]) == pid
        except (OSError, http.client.HTTPException):  # it is gone, or does not answer: its log knows why
            result.last_words = process.log[-3000:]
    result.seconds = time.monotonic() - started_s
    return result


def _fire(gallery: _Gallery, numbers: range, pid: int) -> None:
    """All rounds; memory is looked at after the first fifth and at the end."""
    gallery.check_good()
    rounds = [numbers[place : place + ROUND] for place in range(0, len(numbers), ROUND)]
    settled = max(1, len(rounds) // 5)
    gallery.fire(rounds[:settled])
    gallery.result.before_bytes = memory_bytes(pid)
    _forget_peak(pid)
    for numbers_of_round in rounds[settled:]:
        gallery.fire([numbers_of_round])
        memory_bytes(pid)  # raises where the replica is gone, so that nobody shoots at nothing
    gallery.result.after_bytes, gallery.result.peak_bytes = memory_bytes(pid), memory_bytes(pid, "VmHWM")


class _Gallery:
    """Clients with a connection each."""

    def __init__(self, clients: Sequence[_Client], function: TinyFunction, *, seed: int, result: Result) -> None:
        self.result = result
        self._function = function
        self._seed = seed
        self._noting = threading.Lock()
        self._good = Shot("good", function.sample(random.Random(0)), headers={"Content-Type": function.content_type})
        self._expected: Any = None
        self._idle: SimpleQueue[_Client] = SimpleQueue()
        for client in clients:
            self._idle.put(client)

    def fire(self, rounds: Iterable[range]) -> None:
        """Each round by all clients at once, and a good request after it."""
        with ThreadPoolExecutor(CLIENTS) as pool:
            for numbers in rounds:
                list(pool.map(self._one, numbers))
                self.check_good()

    def check_good(self) -> None:
        """Ask what a user asks; the first answer is the one that all others must be."""
        answer = self._answer(self._good)
        self.result.good_asked += 1
        if answer is None or answer.status != 200:
            return
        self._expected = self._expected or answer.json()
        self.result.good += answer.json() == self._expected

    def _one(self, number: int) -> None:
        sent = shot(self._function, seed=self._seed, number=number)
        answer = self._answer(sent)
        reason = "no answer" if answer is None else complaint(sent, answer)
        with self._noting:
            self.result.shots += 1
            self.result.answers[sent.kind, answer.status if answer else 0] += 1
            if reason:
                self.result.failures.append(Failure(number, sent, reason))

    def _answer(self, sent: Shot) -> Answer | None:
        client = self._idle.get()
        try:
            return client.answer(sent)
        finally:
            self._idle.put(client)


class _Client:
    """Keeps its connection as long as the replica does."""

    def __init__(self, process: ReplicaProcess) -> None:
        self._process = process
        self._kept: UnixConnection | None = None

    def answer(self, sent: Shot) -> Answer | None:
        """The answer, or None; asked on a fresh connection if the kept one was closed."""
        for connection in (self._kept, UnixConnection(self._process.socket, timeout_s=PATIENCE_S)):
            if connection is None:
                continue
            try:
                self._kept = connection
                return connection.call(sent.path, sent.body, method="POST", headers=sent.headers)
            except (OSError, http.client.HTTPException):
                connection.close()
        self._kept = None
        return None

    def close(self) -> None:
        if self._kept is not None:
            self._kept.close()


def complaint(sent: Shot, answer: Answer) -> str:
    """Why an answer is not one that may be given; empty if it may."""
    if answer.status >= 500:
        return f"{answer.status}: {answer.body[:300].decode(errors='replace')}"
    if answer.status < 400:
        return ""
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        return f"{answer.status} without an error in JSON: {answer.body[:200]!r}"
    text = error if sent.path.startswith("/v2") else error["message"]
    return (
        ""
        if isinstance(text, str) and 0 < len(text) < 2000
        else f"{answer.status} with the text {json.dumps(text)[:200]}"
    )


def memory_bytes(pid: int, what: str = "VmRSS") -> int:
    """Resident memory of a process, or its highest (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/{pid}/status has no {what}")


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")
