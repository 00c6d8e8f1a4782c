"""`gshare bench gateway`: what the gateway adds to a request, against asking the function's replica directly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests

from bench.figures import BenchError, Bound, Context, Figure, Wish, alternate, figure, percentile
from bench.http_load import Measured, Payload, Target, closed_loop
from gateway_plugin.model import canonical_name
from gateway_plugin.paths import Paths

CLIENTS = (1, 4, 16)
ADDED_LATENCY = Bound(Wish.AT_MOST, 1.0)
"""Milliseconds at the median: small beside the few ms that the fastest model takes on a GPU."""
_TYPES = {".json": "application/json", ".jpg": "image/jpeg", ".png": "image/png"}
_SIDES = "alternated between the gateway (TCP) and the replica's own unix socket; same body, keep-alive, closed loop"


@dataclass(frozen=True, slots=True)
class GatewayBenchmark:
    """A deployed function with one ready replica, through the gateway and without it."""

    name: str = "gateway"
    description: str = "latency and rate through the gateway against straight at the replica"

    def run(self, context: Context) -> list[Figure]:
        """Raises: BenchError: no gateway, no such function, not exactly one ready replica, no sample to send."""
        payload = sample_of(context)
        gateway, replica = targets(context)
        figures: list[Figure] = []
        for clients in CLIENTS:
            measured = alternate(
                {
                    f"gateway, {clients} clients": _measure(context, gateway, payload=payload, clients=clients),
                    f"replica, {clients} clients": _measure(context, replica, payload=payload, clients=clients),
                },
                runs=context.runs,
                say=context.say,
            )
            through, straight = measured.values()
            figures += _latencies(through, straight) if clients == 1 else []
            figures += _rates(through, straight, clients=clients)
        return figures


def _measure(context: Context, target: Target, *, payload: Payload, clients: int) -> Callable[[], Measured]:
    def measure() -> Measured:
        closed_loop(target, payload, clients=clients, max_requests=clients, run_s=context.run_s)  # opens and warms up
        return closed_loop(target, payload, clients=clients, max_requests=context.max_requests, run_s=context.run_s)

    return measure


def _latencies(through: Sequence[Measured], straight: Sequence[Measured]) -> list[Figure]:
    figures = []
    for percent in (50, 99):
        ours, direct = ([1000 * percentile(run.latencies_s, percent) for run in side] for side in (through, straight))
        what = f"p{percent} of one client's request times in a run, {_SIDES}"
        added = [a - b for a, b in zip(ours, direct, strict=True)]
        ratios = [a / b for a, b in zip(ours, direct, strict=True)]
        bound = ADDED_LATENCY if percent == 50 else None
        figures += [
            figure(f"latency p{percent} through the gateway", ours, unit="ms", definition=what),
            figure(f"latency p{percent} at the replica", direct, unit="ms", definition=what),
            figure(
                f"added latency p{percent}", added, unit="ms", definition=f"difference of the two: {what}", bound=bound
            ),
            figure(f"added latency p{percent}, ratio", ratios, unit="×", definition=f"gateway ÷ replica: {what}"),
        ]
    return figures


def _rates(through: Sequence[Measured], straight: Sequence[Measured], *, clients: int) -> list[Figure]:
    ours, direct = ([run.requests_per_s for run in side] for side in (through, straight))
    what = f"requests answered ÷ duration with {clients} clients, {_SIDES}"
    ratios = [a / b for a, b in zip(ours, direct, strict=True)]
    return [
        figure(f"rate through the gateway, {clients} clients", ours, unit="requests/s", definition=what),
        figure(f"rate at the replica, {clients} clients", direct, unit="requests/s", definition=what),
        figure(f"rate ratio, {clients} clients", ratios, unit="×", definition=f"gateway ÷ replica: {what}"),
    ]


def targets(context: Context) -> tuple[Target, Target]:
    """(gateway, replica). Raises: BenchError."""
    settings = context.settings
    (replica_id,) = _one_ready_replica(context)
    gateway = Target(host=settings.bind_host, port=settings.port, url_path=f"/function/{context.function}")
    return gateway, Target(unix_path=str(Paths(settings.home).replica_http(replica_id)))


def _one_ready_replica(context: Context) -> list[str]:
    function = _described(context)
    ready = [str(replica["id"]) for replica in function["replicas"] if replica["state"] == "ready"]
    if len(ready) != 1:
        raise BenchError(
            f"{context.function} has {len(ready)} ready replicas; both sides must use the same one: wait until it is "
            "ready, or scale it to 1"
        )
    return ready


def _described(context: Context) -> dict[str, Any]:
    url = f"http://{context.settings.bind_host}:{context.settings.port}/gshare/functions"
    try:
        answer = requests.get(url, timeout=10)
        answer.raise_for_status()
    except requests.RequestException as error:
        raise BenchError(f"no gateway at {url}: {error}; start it with make up") from error
    functions = {function["name"]: function for function in answer.json()}
    name = canonical_name(context.function)
    if name not in functions:
        raise BenchError(f"no function {name}; deployed are: {', '.join(sorted(functions)) or 'none'}")
    found: dict[str, Any] = functions[name]
    return found


def sample_of(context: Context) -> Payload:
    """The function's own sample request. Raises: BenchError if its folder has none."""
    folders = [Path(root) / context.function for root in context.settings.functions_path]
    for folder in folders:
        for suffix, content_type in _TYPES.items():
            path = folder / f"sample{suffix}"
            if path.is_file():
                return Payload(path.read_bytes(), content_type)
    looked = ", ".join(str(folder) for folder in folders)
    raise BenchError(f"{context.function}: no sample.json, sample.jpg or sample.png to send, in {looked}")
