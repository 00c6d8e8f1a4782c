"""Dynamic batching: many request threads hand items in, one device thread runs them together.

The device thread is whoever calls `serve`; everything that touches the device happens there. Which items go together,
and when, is decided in `forming`.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from gshare.deadline import NO_DEADLINE, Deadline
from gshare.errors import DeviceLost, Draining, GshareError, ModelFault, OutOfMemory, Overloaded
from gshare.faults import AUTHORS_ERRORS, release_memory, translate
from gshare.forming import Forming, Pause, Rules, Waiting
from gshare.pass_times import PassTimes

log = logging.getLogger(__name__)

LONGEST_WAIT_S = 3600.0
"""Then the queue is looked at again; the platform does not take any number."""
Forward = Callable[[list[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    item: Any
    result: Future[Any] = field(default_factory=Future)


class Batcher:
    """Collects items of equal key by its rules and runs `forward` on them."""

    def __init__(
        self,
        forward: Forward,
        *,
        rules: Rules | None = None,
        times: PassTimes | None = None,
        on_batch: Callable[[int], None] | None = None,
        on_lost: Callable[[DeviceLost], None] | None = None,
        on_idle: Callable[[], None] | None = None,
    ) -> None:
        """`times` learns how long passes take. `on_batch` is told each pass' size before it runs, `on_lost` of a fault
        after which the device is of no use, `on_idle` (quick) that the device thread begins to wait.
        """
        self._forward = forward
        self._on_batch = on_batch
        self._on_lost = on_lost
        self._on_idle = on_idle
        self._forming: Forming[_Job] = Forming(rules or Rules(), times or PassTimes())
        self._changed = threading.Condition()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return len(self._forming)

    def configure(self, rules: Rules) -> None:
        """New rules, in force from the next pass on."""
        with self._changed:
            self._forming.rules = rules
            self._changed.notify_all()

    def infer(self, items: Sequence[Any], keys: Sequence[Hashable], *, deadline: Deadline = NO_DEADLINE) -> list[Any]:
        """The outputs for `items`, in order; blocks until the passes they went into are through.

        More items than a pass takes are split; items of other callers may share their passes.

        Raises:
            Overloaded: they would be through too late. DeadlineExceeded: some had not begun in time.
            ModelFault, OutOfMemory, DeviceLost: `forward` raised on one of them alone. Draining: the batcher is closed.
            GshareError: whatever of these `forward` raised itself. Its `item` is the place of the first item at fault.
        """
        jobs = self._hand_in(items, keys, deadline)
        try:
            return [self._result(job, place, deadline) for place, job in enumerate(jobs)]
        finally:
            self._withdraw(jobs)

    def close(self) -> None:
        """Take nothing new; `serve` returns when everything handed in is answered."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def serve(self) -> None:
        """Run passes in this thread until closed and empty."""
        while batch := self._next_batch():
            if self._on_batch:
                self._on_batch(len(batch))
            started_s = time.monotonic()
            whole = self._run_batch([one.item for one in batch])
            seconds = time.monotonic() - started_s if whole else None
            with self._changed:
                self._forming.ended(batch[0].key, len(batch), seconds=seconds)

    def _hand_in(self, items: Sequence[Any], keys: Sequence[Hashable], deadline: Deadline) -> list[_Job]:
        jobs = [_Job(item) for item in items]
        with self._changed:
            if self._closed:
                raise Draining("this replica has stopped; send the request again")
            now_s = time.monotonic()
            late_s = self._forming.refusal_s(keys, now_s=now_s, deadline_s=deadline.at_s)
            if late_s is not None:
                raise self._overloaded(late_s)
            self._forming.add(Waiting(job, key, now_s) for job, key in zip(jobs, keys, strict=True))
            self._changed.notify_all()
        return jobs

    def _overloaded(self, late_s: float) -> Overloaded:
        return Overloaded(
            f"{self.waiting} items wait before this; it would be answered {late_s * 1000:.0f} ms later than is of use",
            retry_after_s=max(1, math.ceil(late_s)),
        )

    def _result(self, job: _Job, place: int, deadline: Deadline) -> Any:
        try:
            return self._wait(job, deadline)
        except GshareError as error:
            raise _of_item(error, place) from error.__cause__

    def _wait(self, job: _Job, deadline: Deadline) -> Any:
        """Its result. Nothing can stop a pass, so what is in one when its time ends is waited for."""
        try:
            return job.result.result(deadline.remaining_s())
        except TimeoutError:
            if self._withdraw([job]):
                raise deadline.exceeded("it had not begun") from None
        return job.result.result()

    def _withdraw(self, jobs: Sequence[_Job]) -> bool:
        """Take those out of the queue that are still in it; whether there were any."""
        undone = [job for job in jobs if not job.result.done()]
        if not undone:
            return False
        with self._changed:
            return self._forming.remove(undone) > 0

    def _next_batch(self) -> list[Waiting[_Job]]:
        """The items of the next pass; empty when closed and done."""
        with self._changed:
            while True:
                now_s = time.monotonic()
                found = self._forming.next(now_s, closing=self._closed)
                if not isinstance(found, Pause):
                    return found
                if self._closed:
                    return []
                if self._on_idle:
                    self._on_idle()
                self._changed.wait(min(found.until_s - now_s, LONGEST_WAIT_S))

    def _run_batch(self, batch: list[_Job]) -> bool:
        """Whether all of it went through in one pass."""
        try:
            outputs = self._outputs(batch)
        except AUTHORS_ERRORS as error:  # edge of a pass: its items are at fault, the device thread lives on
            self._blame(batch, error)
            return False
        for job, output in zip(batch, outputs, strict=True):
            job.result.set_result(output)
        return True

    def _outputs(self, batch: list[_Job]) -> list[Any]:
        outputs = list(self._forward([job.item for job in batch]))
        if len(outputs) != len(batch):
            raise ModelFault(f"forward() returned {len(outputs)} outputs for {len(batch)} items; one for each")
        return outputs

    def _blame(self, batch: list[_Job], error: BaseException) -> None:
        """Retry each item of a failed pass alone, once, so that only the guilty one fails."""
        fault = translate(error)
        if isinstance(fault, OutOfMemory):
            release_memory()
        if len(batch) > 1 and not isinstance(fault, DeviceLost):
            log.warning("a pass of %d failed (%s: %s); each runs alone", len(batch), type(error).__name__, error)
            for job in batch:
                self._run_batch([job])
            return
        if fault is not error:
            log.error("forward() failed", exc_info=error)
        for job in batch:
            job.result.set_exception(fault)
        if isinstance(fault, DeviceLost) and self._on_lost:
            self._on_lost(fault)


def _of_item(error: GshareError, place: int) -> GshareError:
    """The same error, saying which of a request's items it is about; items of others may share the original."""
    named = type(error)(str(error))
    named.retry_after_s, named.item = error.retry_after_s, place
    return named
