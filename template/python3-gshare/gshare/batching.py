"""Dynamic batching: many request threads hand items in, one device thread runs them together.

The device thread is whoever calls `serve`; everything that touches the device happens there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from gshare.errors import Draining, GshareError, ModelFault

log = logging.getLogger(__name__)

Forward = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class _Job:
    item: Any
    key: Hashable
    arrived_s: float
    result: Future[Any] = field(default_factory=Future)


class Batcher:
    """Collects items of equal key, at most `max_batch`, for at most `max_delay_s`, and runs `forward` on them."""

    def __init__(
        self,
        forward: Forward,
        *,
        max_batch: int = 1,
        max_delay_s: float = 0.0,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        """`on_batch` is told the size of each batch before it runs."""
        self._forward = forward
        self._on_batch = on_batch
        self._max_batch = max_batch
        self._max_delay_s = max_delay_s
        self._waiting: deque[_Job] = deque()
        self._changed = threading.Condition()
        self._closed = False

    def configure(self, *, max_batch: int, max_delay_s: float) -> None:
        """New limits, in force from the next batch on."""
        with self._changed:
            self._max_batch, self._max_delay_s = max_batch, max_delay_s
            self._changed.notify_all()

    def run(self, item: Any, key: Hashable = None) -> Any:
        """The output for `item`; blocks until its batch is through.

        Raises:
            ModelFault: `forward` raised on this item alone. Draining: the batcher is closed.
            GshareError: whatever of these `forward` raised itself.
        """
        job = _Job(item, key, time.monotonic())
        with self._changed:
            if self._closed:
                raise Draining("this replica has stopped; send the request again")
            self._waiting.append(job)
            self._changed.notify_all()
        return job.result.result()

    def close(self) -> None:
        """Take nothing new; `serve` returns when everything handed in is answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def serve(self) -> None:
        """Run batches in this thread until closed and empty."""
        while batch := self._next_batch():
            if self._on_batch:
                self._on_batch(len(batch))
            self._run_batch(batch)

    def _next_batch(self) -> list[_Job]:
        """The oldest item with as many of its kind as there may be; empty when closed and done."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            if not self._waiting:
                return []
            first = self._waiting[0]
            self._wait_for_company(first)
            batch = [job for job in self._waiting if job.key == first.key][: self._max_batch]
            taken = set(map(id, batch))
            self._waiting = deque(job for job in self._waiting if id(job) not in taken)
            return batch

    def _wait_for_company(self, first: _Job) -> None:
        while not self._closed and sum(job.key == first.key for job in self._waiting) < self._max_batch:
            remaining_s = first.arrived_s + self._max_delay_s - time.monotonic()
            if remaining_s <= 0:
                return
            self._changed.wait(remaining_s)

    def _run_batch(self, batch: list[_Job]) -> None:
        try:
            outputs = self._outputs(batch)
        except Exception as error:  # edge of a batch: the fault belongs to the items in it, the device thread lives on
            self._blame(batch, error)
            return
        for job, output in zip(batch, outputs, strict=True):
            job.result.set_result(output)

    def _outputs(self, batch: list[_Job]) -> list[Any]:
        outputs = list(self._forward([job.item for job in batch]))
        if len(outputs) != len(batch):
            raise ModelFault(f"forward() returned {len(outputs)} outputs for {len(batch)} items; one for each")
        return outputs

    def _blame(self, batch: list[_Job], error: Exception) -> None:
        """Retry each item of a failed batch alone, once, so that only the guilty one fails."""
        if len(batch) > 1:
            log.warning("a batch of %d failed (%s: %s); each runs alone", len(batch), type(error).__name__, error)
            for job in batch:
                self._run_batch([job])
            return
        if isinstance(error, GshareError):
            batch[0].result.set_exception(error)
            return
        log.error("forward() failed", exc_info=error)
        fault = ModelFault(f"forward() raised {type(error).__name__}: {error}")
        fault.__cause__ = error
        batch[0].result.set_exception(fault)
