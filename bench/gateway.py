"""`gshare bench gateway`: what the gateway adds to a request, against asking the function's replica directly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.deployed import described, sample_of, through_gateway
from bench.figures import BenchError, Bound, Context, Figure, Wish, alternate, figure, percentile
from bench.http_load import Call, Measured, Target, closed_loop
from gateway_plugin.paths import Paths

CLIENTS = (1, 4, 16)
PING = Call("GET", "/_/health")
"""The cheapest page of a replica: no model whose own variance would hide the gateway."""
ADDED_LATENCY = Bound(Wish.AT_MOST, 1.0)
"""Milliseconds at the median: small beside the few ms that the fastest model takes on a GPU."""
_SIDES = "keep-alive, closed loop, alternated between the gateway (TCP) and the replica's own unix socket"


@dataclass(frozen=True, slots=True)
class GatewayBenchmark:
    """A deployed function with one ready replica, through the gateway and without it."""

    name: str = "gateway"
    description: str = "latency and rate through the gateway against straight at the replica"

    def run(self, context: Context) -> list[Figure]:
        """Raises: BenchError: no gateway, no such function, not exactly one ready replica, no sample to send."""
        sample = sample_of(context, context.function)
        sides = targets(context)
        figures: list[Figure] = []
        for clients in CLIENTS:
            through, straight = _compare(context, sides, call=PING, clients=clients)
            if clients == 1:
                figures += _latencies(through, straight, what="health page", bound=ADDED_LATENCY)
            figures += _rates(through, straight, clients=clients)
        through, straight = _compare(context, sides, call=sample, clients=1)
        return figures + _latencies(through, straight, what=f"{context.function}'s sample", bound=None)


def _compare(
    context: Context, sides: tuple[Target, Target], *, call: Call, clients: int
) -> tuple[list[Measured], list[Measured]]:
    """Measurements through the gateway and straight at the replica, pair by pair."""

    def measure(target: Target) -> Callable[[], Measured]:
        def once() -> Measured:
            closed_loop(target, call, clients=clients, max_requests=clients, run_s=context.run_s)  # warms up
            return closed_loop(target, call, clients=clients, max_requests=context.max_requests, run_s=context.run_s)

        return once

    gateway, replica = sides
    what = f"{call.method} {call.path}, {clients} at once"
    measured = alternate(
        {f"gateway, {what}": measure(gateway), f"replica, {what}": measure(replica)}, runs=context.runs, say=context.say
    )
    through, straight = measured.values()
    return through, straight


def _latencies(
    through: Sequence[Measured], straight: Sequence[Measured], *, what: str, bound: Bound | None
) -> list[Figure]:
    figures = []
    for percent in (50, 99):
        ours, direct = ([1000 * percentile(run.latencies_s, percent) for run in side] for side in (through, straight))
        meaning = f"p{percent} of the request times of one client ({what}); {_SIDES}"
        added = [a - b for a, b in zip(ours, direct, strict=True)]
        ratios = [a / b for a, b in zip(ours, direct, strict=True)]
        title = f"{what}, p{percent}"
        figures += [
            figure(f"{title}, gateway", ours, unit="ms", definition=meaning),
            figure(f"{title}, replica", direct, unit="ms", definition=meaning),
            figure(
                f"{title}, added",
                added,
                unit="ms",
                definition="gateway - replica, pair of runs by pair of runs",
                bound=bound if percent == 50 else None,
            ),
            figure(f"{title}, ratio", ratios, unit="×", definition="gateway ÷ replica, pair of runs by pair of runs"),
        ]
    return figures


def _rates(through: Sequence[Measured], straight: Sequence[Measured], *, clients: int) -> list[Figure]:
    ours, direct = ([run.requests_per_s for run in side] for side in (through, straight))
    meaning = f"health pages answered ÷ duration; {_SIDES}; the load generator shares the cores, so a lower bound"
    ratios = [a / b for a, b in zip(ours, direct, strict=True)]
    title = f"rate with {clients} client{'s' if clients > 1 else ''}"
    return [
        figure(f"{title}, gateway", ours, unit="requests/s", definition=meaning),
        figure(f"{title}, replica", direct, unit="requests/s", definition=meaning),
        figure(f"{title}, ratio", ratios, unit="×", definition="gateway ÷ replica, pair of runs by pair of runs"),
    ]


def targets(context: Context) -> tuple[Target, Target]:
    """(gateway, replica). Raises: BenchError."""
    replica = Target(unix_path=str(Paths(context.settings.home).replica_http(_ready_replica(context))))
    return through_gateway(context, context.function), replica


def _ready_replica(context: Context) -> str:
    ready = [one.id for one in described(context, context.function).replicas if one.state == "ready"]
    if len(ready) != 1:
        raise BenchError(
            f"{context.function} has {len(ready)} ready replicas; both sides must use the same one: wait until it is "
            "ready, or scale it to 1"
        )
    return ready[0]
