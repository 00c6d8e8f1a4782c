"""`gshare bench batching`: 16 clients with and without batches, in one replica that has the whole device.

That needs a little room on every unit of the device: `gshare up --functions resnet50,bert`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
from gshare import share

from bench.deployed import is_ready, put, remove, sample_of, through_gateway, wait_for
from bench.figures import Bound, Context, Figure, Wish, alternate, figure, percentile
from bench.http_load import Call, Measured, closed_loop
from gateway_plugin.model import FunctionSpec

CLIENTS = 16
MAX_BATCH = 16
DELAY_MS = "20"
LATENCY_BOUND = Bound(Wish.AT_MOST, 24.0)
"""p99 of a batched request over the p50 of one alone."""
_NAME = "bench-batching"


@dataclass(frozen=True, slots=True)
class Case:
    """One function and request to try."""

    title: str
    image: str
    sm_partition: int
    """Percent of the device's SMs (cores on a CPU)."""
    call: Callable[[Context], Call]
    gain: Bound | None
    """What batching must gain; None: reported only."""
    clients: int = CLIENTS


@dataclass(frozen=True, slots=True)
class BatchingBenchmark:
    """Batches of up to 16 against one request at a time, alternated in the same replica by its live settings."""

    name: str = "batching"
    description: str = f"throughput of {CLIENTS} clients with batches against without, by live settings"

    def run(self, context: Context) -> list[Figure]:
        """Raises: BenchError: no gateway, or the function does not get ready."""
        try:
            return [one for case in CASES for one in _case(context, case)]
        finally:
            remove(context, _NAME)


def _question(words: int) -> Callable[[Context], Call]:
    """A question to BERT over so many one-letter words, each of them a token also for `random:` weights."""
    context = " ".join("abcdefghijklmnopqrstuvwxyz"[number % 26] for number in range(words))
    body = msgspec.json.encode({"question": "who?", "context": context})
    return lambda _: Call("POST", "/", body, "application/json")


def _picture(context: Context) -> Call:
    return sample_of(context, "resnet50")


CASES = (
    Case(
        "resnet50, whole CPU",
        "resnet50",
        100,
        _picture,
        Bound(Wish.AT_LEAST, 1.3),
    ),
    Case("bert, 32 tokens, whole CPU", "bert", 100, _question(26), Bound(Wish.AT_LEAST, 1.4)),
    Case("resnet50, one core", "resnet50", 1, _picture, None),
    # Fewer clients: 16 would wait for longer than the gateway lets a request take.
    Case("bert, 384 tokens, whole CPU, 4 clients", "bert", 100, _question(376), None, clients=4),
)


def _case(context: Context, case: Case) -> list[Figure]:
    context.say(f"{case.title}: starting a replica of its own")
    _set_batch(context, case, 1)
    target, call = through_gateway(context, _NAME), case.call(context)
    closed_loop(target, call, clients=1, max_requests=2, run_s=context.run_s)  # warms up
    alone = closed_loop(target, call, clients=1, max_requests=20, run_s=context.run_s)

    def side(max_batch: int) -> Callable[[], Measured]:
        def once() -> Measured:
            _set_batch(context, case, max_batch)
            return closed_loop(
                target, call, clients=case.clients, max_requests=context.max_requests, run_s=context.run_s
            )

        return once

    runs = alternate({"batched": side(MAX_BATCH), "one at a time": side(1)}, runs=context.runs, say=context.say)
    return _figures(case, runs["batched"], runs["one at a time"], alone_p50_s=percentile(alone.latencies_s, 50))


def _set_batch(context: Context, case: Case, max_batch: int) -> None:
    annotations = {
        share.SM_PARTITION: str(case.sm_partition),
        share.QUOTA_REQUEST: "0.01",
        share.MAX_BATCH: str(max_batch),
        share.MAX_BATCH_DELAY_MS: DELAY_MS if max_batch > 1 else "0",
        share.SLO_MS: "60000",
        share.WEIGHTS: "random:0",
    }
    put(context, FunctionSpec(service=_NAME, image=case.image, annotations=annotations))
    wait_for(context, _NAME, lambda view: is_ready(view) and view.max_batch == max_batch, what="ready")


def _figures(case: Case, batched: list[Measured], single: list[Measured], *, alone_p50_s: float) -> list[Figure]:
    ours, theirs = ([run.requests_per_s for run in side] for side in (batched, single))
    tails = [percentile(run.latencies_s, 99) / alone_p50_s for run in batched]
    meaning = f"answers ÷ duration, {case.clients} clients, closed loop, alternated by live settings in one replica"
    return [
        figure(f"{case.title}, max_batch {MAX_BATCH}", ours, unit="requests/s", definition=meaning),
        figure(f"{case.title}, max_batch 1", theirs, unit="requests/s", definition=meaning),
        figure(
            f"{case.title}, gain",
            [a / b for a, b in zip(ours, theirs, strict=True)],
            unit="×",
            definition="batched ÷ one at a time, pair of runs by pair of runs",
            bound=case.gain,
        ),
        figure(
            f"{case.title}, p99 over one request alone",
            tails,
            unit="×",
            definition="p99 with batches ÷ p50 of a single client without",
            bound=LATENCY_BOUND if case.gain else None,
        ),
    ]
