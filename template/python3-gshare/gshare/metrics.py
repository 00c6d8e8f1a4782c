"""What one replica counts, in Prometheus' form and for its status page; every metric's name is here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter, which nobody here reads
CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_ITEMS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Counts(msgspec.Struct, frozen=True):
    """Totals since the process started."""

    requests: int = 0
    failed: int = 0
    """Of these, answered with a status of 500 or more."""
    batches: int = 0


class InFlight:
    """How many requests are being answered, and a way to wait until there are none."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @property
    def count(self) -> int:
        return self._count

    def __enter__(self) -> None:
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._count -= 1
            self._changed.notify_all()

    def wait_quiet(self, quiet_s: float, *, timeout_s: float) -> bool:
        """Wait until no request has been in work for `quiet_s`; False if that does not come about in `timeout_s`."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            while (remaining_s := deadline_s - time.monotonic()) > 0:
                if self._count:
                    self._changed.wait(remaining_s)
                elif not self._changed.wait(quiet_s):
                    return True
        return False


class Metrics:
    """The metrics of one function's replica, in a registry of their own."""

    def __init__(self, function: str) -> None:
        self.in_flight = InFlight()
        self._counts = Counts()
        self._lock = threading.Lock()
        self._registry = CollectorRegistry()
        names = ("function_name",)
        self._requests = Counter(
            "gshare_requests", "Answered calls of the function.", (*names, "code"), registry=self._registry
        )
        self._errors = Counter(
            "gshare_errors", "Errors by the code in their body.", (*names, "error"), registry=self._registry
        )
        self._seconds = Histogram(
            "gshare_request_seconds", "Head in to answer ready.", names, buckets=_SECONDS, registry=self._registry
        ).labels(function)
        self._items = Histogram(
            "gshare_batch_items", "Items in one forward pass.", names, buckets=_ITEMS, registry=self._registry
        ).labels(function)
        self._gauges = {
            name: Gauge(f"gshare_{name}", text, names, registry=self._registry).labels(function)
            for name, text in (
                ("inflight", "Calls being answered now."),
                ("ready", "1 when the replica takes requests."),
                ("managed", "1 when connected to its node agent."),
                (
                    "token_server_up",
                    "1 when its device's token server gives it its time.",
                ),
                ("memory_bytes", "Memory held on the replica's device."),
            )
        }
        self._gauges["inflight"].set_function(lambda: float(self.in_flight.count))
        self._function = function

    @property
    def counts(self) -> Counts:
        return self._counts

    def watch(self, gauge: str, value: Callable[[], float]) -> None:
        """Read `gshare_{gauge}` from `value` at each scrape."""
        self._gauges[gauge].set_function(value)

    def answered(self, code: int, seconds: float) -> None:
        """One call of the function was answered."""
        self._requests.labels(self._function, str(code)).inc()
        self._seconds.observe(seconds)
        self._count(requests=1, failed=int(code >= 500))

    def error(self, code: str) -> None:
        """An error reply with this code went out."""
        self._errors.labels(self._function, code).inc()

    def batch(self, size: int) -> None:
        """A forward pass of `size` items begins."""
        self._items.observe(size)
        self._count(batches=1)

    def text(self) -> bytes:
        """Prometheus' exposition format."""
        return generate_latest(self._registry)

    def _count(self, *, requests: int = 0, failed: int = 0, batches: int = 0) -> None:
        with self._lock:
            old = self._counts
            self._counts = Counts(old.requests + requests, old.failed + failed, old.batches + batches)
