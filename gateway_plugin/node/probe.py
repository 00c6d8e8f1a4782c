"""A probe: a process that wants a device all the time, and counts the blocks of equal work it gets done.

It asks for tokens exactly as a replica does. Whether its share holds is for others to say: it only reports. Run as
`python -m gateway_plugin.node.probe` with requests on standard input; it ends when that does.
"""

from __future__ import annotations

import queue
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from typing import BinaryIO

import msgspec
from gshare.temporal import TokenClient
from gshare.turn import FreeTurn, Turn

from gateway_plugin.node.tally import Block, Tally
from gateway_plugin.probe_protocol import (
    PROBE_REQUEST,
    Calibrate,
    Calibrated,
    Prepare,
    Prepared,
    ProbeAnswer,
    ProbeRequest,
    Ran,
    Run,
    Unable,
)

CPU_SIZE, CUDA_SIZE = 256, 2048
"""Rows of the matrices: small enough for a core's own cache, large enough for every multiprocessor of a GPU."""
SETTLE_S = 10.0
LEAST_TIMED_S = 0.002
"""Work is doubled until it takes this long, so that the clock's own cost is no part of it."""
TIMINGS = 5


class Work:
    """Equal pieces of work on one device. Raises RuntimeError, as torch does, where that cannot be used."""

    def __init__(self, *, threads: int, cuda: bool) -> None:
        import torch

        self._torch, self._cuda, self._threads = torch, cuda, threads
        torch.set_num_threads(threads)
        size, device = (CUDA_SIZE, "cuda:0") if cuda else (CPU_SIZE, "cpu")
        self._left = torch.full((size, size), 0.5, device=device)
        self._right = torch.full((size, size), 0.5, device=device)
        self._out = torch.empty((size, size), device=device)
        self(1)

    def __call__(self, repeats: int) -> None:
        """Do the piece so many times; returns when the device has done all of it."""
        with self._torch.inference_mode():
            for _ in range(repeats):
                self._torch.mm(self._left, self._right, out=self._out)
        if self._cuda:
            self._torch.cuda.synchronize()

    def repeats_for(self, block_s: float) -> Calibrated:
        """As many repeats as take about that long."""
        repeats = 1
        while (took_s := self._time(repeats)) < LEAST_TIMED_S:
            repeats *= 2
        repeats = max(1, round(repeats * block_s / took_s))
        return Calibrated(repeats, self._time(repeats))

    def _time(self, repeats: int) -> float:
        return statistics.median(self._time_once(repeats) for _ in range(TIMINGS))

    def _time_once(self, repeats: int) -> float:
        """On cores by CPU time: what others on them take away meanwhile makes the work no larger."""
        started_s, cpu_s = time.perf_counter(), time.process_time()
        self(repeats)
        return time.perf_counter() - started_s if self._cuda else (time.process_time() - cpu_s) / self._threads


class Probe:
    """Answers requests; made by the first of them."""

    def __init__(self, asked: Prepare, *, orphaned: threading.Event) -> None:
        """`orphaned`: nobody wants its answers any more. Raises: RuntimeError: no such device, or no scheduler."""
        self._orphaned = orphaned
        self._work = Work(threads=asked.threads, cuda=asked.cuda)
        self._free = FreeTurn()
        self._tokens = TokenClient(asked.token_socket, asked.credential, request=lambda: asked.request)
        self._tokens.start()
        if not self._tokens.wait_settled(SETTLE_S):
            raise RuntimeError(f"no welcome by the token scheduler within {SETTLE_S:g} s: {self._tokens.reason}")

    def answer(self, request: ProbeRequest) -> ProbeAnswer:
        match request:
            case Prepare():
                return Prepared()
            case Calibrate(block_s=block_s):
                return self._work.repeats_for(block_s)
            case Run():
                return self._run(request, self._tokens if request.gated else self._free)

    def stop(self) -> None:
        self._tokens.stop()

    def _run(self, asked: Run, turn: Turn) -> Ran:
        tally = Tally(asked, counts=turn.counts, cpu_s=time.process_time())
        self._orphaned.wait(max(0.0, asked.begin_s - time.monotonic()))
        while not self._orphaned.is_set() and (wanted_s := time.monotonic()) < asked.end_s:
            turn.begin()
            begun_s = time.monotonic()
            self._work(asked.repeats)
            turn.end()
            tally.add(
                Block(
                    wanted_s=wanted_s,
                    begun_s=begun_s,
                    ended_s=time.monotonic(),
                    cpu_s=time.process_time(),
                    counts=turn.counts,
                )
            )
            if asked.pause_s:
                turn.idle()
                self._orphaned.wait(asked.pause_s)
        turn.idle()
        return tally.result(gating=turn.gating, reason=turn.reason if asked.gated else "told to do without tokens")


class Requests:
    """What comes on a stream, read by a thread of its own, so that its end is noticed while the probe computes."""

    def __init__(self, stream: BinaryIO) -> None:
        self.ended = threading.Event()
        self._stream = stream
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, name="requests", daemon=True).start()

    def __iter__(self) -> Iterator[ProbeRequest]:
        while line := self._lines.get():
            yield PROBE_REQUEST.decode(line)

    def _read(self) -> None:
        for line in self._stream:
            self._lines.put(line)
        self.ended.set()
        self._lines.put(b"")


def serve(requests: Requests, output: BinaryIO) -> None:
    """Answer until there is nobody to answer."""
    probe: Probe | None = None
    try:
        for request in requests:
            try:
                if isinstance(request, Prepare):
                    probe = Probe(request, orphaned=requests.ended)
                answer = probe.answer(request) if probe is not None else Unable("not prepared")
            except (ImportError, OSError, RuntimeError) as error:  # torch's errors are RuntimeErrors
                answer = Unable(f"{error}")
            output.write(msgspec.json.encode(answer) + b"\n")
            output.flush()
    finally:
        if probe is not None:
            probe.stop()


if __name__ == "__main__":
    serve(Requests(sys.stdin.buffer), sys.stdout.buffer)
