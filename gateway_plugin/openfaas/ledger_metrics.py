"""The devices' ledgers as Prometheus metrics; their names are here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.model import ReplicaStatus

OF_FUNCTION = ("function_name", "device")
OF_REPLICA = ("function_name", "replica", "device")
_COUNTERS: tuple[tuple[str, str, Callable[[Entry], float]], ...] = (
    ("gshare_replica_device_seconds", "Device time that a replica used.", lambda one: one.used_s),
    ("gshare_tokens", "Tokens that a replica was granted.", lambda one: one.tokens),
    ("gshare_token_wait_seconds", "Time with demand and without a token.", lambda one: one.waited_s),
    ("gshare_overuse_seconds", "Device time beyond granted slices, repaid later.", lambda one: one.overused_s),
    ("gshare_tokens_lost", "Tokens taken away, not returned in time.", lambda one: one.lost),
    ("gshare_ungated_core_seconds", "CPU time on a CPU device without a token.", lambda one: one.ungated_core_s),
)
_GAUGES: tuple[tuple[str, str, Callable[[Entry], float]], ...] = (
    ("gshare_quota_request", "Fraction of the device's time that is guaranteed.", lambda one: one.request),
    ("gshare_quota_limit", "Fraction of the device's time never passed.", lambda one: one.limit),
    ("gshare_share_measured", "Fraction of the last seconds that was used.", lambda one: one.share),
    ("gshare_token_held", "1 while it holds a token.", lambda one: one.holding),
    ("gshare_token_waiting", "1 while it waits for a token.", lambda one: one.waiting),
    ("gshare_managed", "1 when it asks its scheduler for tokens.", lambda one: one.connected),
)


def ledger_metrics(ledgers: Iterable[Ledger], replicas: Iterable[ReplicaStatus]) -> bytes:
    """Prometheus' exposition format. `replicas`: what the node says of them, for what it saw without a token."""
    registry = CollectorRegistry()
    registry.register(_Families([*_families(tuple(ledgers)), _ungated(replicas)]))
    return generate_latest(registry)


class _Families:
    """What a registry wants: something that collects."""

    def __init__(self, families: Sequence[Metric]) -> None:
        self._families = families

    def collect(self) -> Sequence[Metric]:
        return self._families


def _families(ledgers: Sequence[Ledger]) -> Iterator[Metric]:
    seconds = CounterMetricFamily(
        "gshare_device_seconds", "Device time by function, ended replicas included.", labels=OF_FUNCTION
    )
    for ledger in ledgers:
        for function, used_s in ledger.functions.items():
            seconds.add_metric((function, ledger.device), used_s)
    yield seconds
    for name, text, value in _COUNTERS:
        counter = CounterMetricFamily(name, text, labels=OF_REPLICA)
        _fill(counter, ledgers, value)
        yield counter
    for name, text, value in _GAUGES:
        gauge = GaugeMetricFamily(name, text, labels=OF_REPLICA)
        _fill(gauge, ledgers, value)
        yield gauge
    out = GaugeMetricFamily("gshare_tokens_out", "Tokens of a device that are out now.", labels=("device",))
    for ledger in ledgers:
        out.add_metric((ledger.device,), sum(entry.holding for entry in ledger.entries))
    yield out


def _fill(
    family: CounterMetricFamily | GaugeMetricFamily, ledgers: Sequence[Ledger], value: Callable[[Entry], float]
) -> None:
    for ledger in ledgers:
        for entry in ledger.entries:
            family.add_metric((entry.function, entry.replica, ledger.device), value(entry))


def _ungated(replicas: Iterable[ReplicaStatus]) -> Metric:
    family = GaugeMetricFamily(
        "gshare_ungated_device_use", "1 while a replica computes without a token.", labels=OF_REPLICA
    )
    for status in replicas:
        if status.spec.place is not None:
            labels = (status.spec.function, status.spec.id, status.spec.place.device)
            family.add_metric(labels, status.ungated_device_use)
    return family
