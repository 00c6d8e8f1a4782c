"""`gshare bench functions`: what each deployed function needs and gives on this machine, one after the other."""

from __future__ import annotations

from dataclasses import dataclass

import requests
from gshare import share

from bench.deployed import functions, is_ready, put, remove, sample_of, scale, through_gateway, wait_for
from bench.figures import BenchError, Context, Figure, figure, percentile
from bench.http_load import Measured, closed_loop
from gateway_plugin.machine import gateway_url
from gateway_plugin.model import FunctionSpec, canonical_name
from gateway_plugin.openfaas.gshare_views import GshareFunctionView

CLIENTS = (1, 4, 16)
COPY = "bench-functions"
QUOTA_REQUEST = "0.01"
"""What the copy counts in placement, so that it fits beside the function itself."""
SLO_MS = "3600000"
_LOOP = "closed loop through the gateway with the function's own sample, to a copy of it; the others idle"


@dataclass(frozen=True, slots=True)
class FunctionsBenchmark:
    """Every deployed function: start, latency, throughput, memory."""

    name: str = "functions"
    description: str = "start to ready, latency, throughput and memory of every deployed function"

    def run(self, context: Context) -> list[Figure]:
        """Raises: BenchError: no gateway, no function, or one that does not get ready."""
        remove(context, COPY)  # of a run that was killed
        views = [view for view in functions(context).values() if view.name != canonical_name(COPY)]
        if not views:
            raise BenchError("no function is deployed; run make up")
        return [one for view in views for one in _function(context, view)]


def _function(context: Context, view: GshareFunctionView) -> list[Figure]:
    name = view.name.partition(".")[0]
    put(context, _copy(view))
    try:
        return _measure(context, name)
    finally:
        remove(context, COPY)


def _copy(view: GshareFunctionView) -> FunctionSpec:
    """The same function with the same share, and an objective that sheds nothing: throughput is what is asked."""
    annotations = {
        share.SM_PARTITION: str(view.share.sm_partition),
        share.QUOTA_REQUEST: QUOTA_REQUEST,
        share.SLO_MS: SLO_MS,
        share.WEIGHTS: view.weights,
    }
    asked = {key: value for key, value in annotations.items() if value}
    return FunctionSpec(service=COPY, image=view.image, annotations=asked)


def _measure(context: Context, name: str) -> list[Figure]:
    context.say(f"{name}: starting a copy of it")
    wait_for(context, COPY, is_ready, what="ready")
    starts = [_start_s(context) for _ in range(context.runs)]
    call, target = sample_of(context, name), through_gateway(context, COPY)
    closed_loop(target, call, clients=1, max_requests=2, run_s=context.run_s)  # warms up
    figures = [
        figure(
            f"{name}, start to ready",
            starts,
            unit="s",
            definition="from asking for one replica to the gateway having it in its routes; weights are on disk",
        )
    ]
    for clients in CLIENTS:
        context.say(f"{name}: {clients} client(s)")
        runs = [
            closed_loop(target, call, clients=clients, max_requests=context.max_requests, run_s=context.run_s)
            for _ in range(context.runs)
        ]
        figures += _load(name, runs, clients=clients)
    return [*figures, _memory(context, name)]


def _start_s(context: Context) -> float:
    scale(context, COPY, 0)
    wait_for(context, COPY, is_ready, what="at zero")
    scale(context, COPY, 1)
    return wait_for(context, COPY, is_ready, what="ready")


def _load(name: str, runs: list[Measured], *, clients: int) -> list[Figure]:
    many = f"{clients} client{'s' if clients > 1 else ''}"
    rates = figure(
        f"{name}, throughput, {many}",
        [run.requests_per_s for run in runs],
        unit="requests/s",
        definition=f"answers ÷ duration; {_LOOP}",
    )
    if clients > 1:
        return [rates]
    return [
        figure(
            f"{name}, p{percent}, {many}",
            [1000 * percentile(run.latencies_s, percent) for run in runs],
            unit="ms",
            definition=f"p{percent} of the request times; {_LOOP}",
        )
        for percent in (50, 99)
    ] + [rates]


def _memory(context: Context, name: str) -> Figure:
    url = f"{gateway_url(context.settings)}/function/{COPY}/_/status"
    size = requests.get(url, timeout=10).json()["memory_bytes"]
    return figure(
        f"{name}, memory",
        [size / 2**20],
        unit="MiB",
        definition="resident memory of the replica's serving process on cpu, device memory on cuda, after warm-up",
    )
