from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
import torch
from gshare.batching import Batcher
from gshare.deadline import Deadline
from gshare.errors import BadInput, DeadlineExceeded, DeviceLost, Draining, ModelFault, Overloaded
from gshare.forming import Rules
from gshare.pass_times import PassTimes

LIMIT_S = 30.0
LONG_S = 20.0
"""A delay that no test waits out."""


class Doubler:
    """A device that doubles numbers, faults on those in `bad`, and can be held to let items gather."""

    def __init__(self, bad: Sequence[int] = ()) -> None:
        self.batches: list[list[int]] = []
        self.started = threading.Semaphore(0)
        self.free = threading.Event()
        self.free.set()
        self._bad = bad

    def __call__(self, items: list[int]) -> list[int]:
        self.started.release()
        assert self.free.wait(LIMIT_S)
        self.batches.append(items)
        if set(items) & set(self._bad):
            raise RuntimeError("cannot double that")
        return [2 * item for item in items]

    def wait_started(self) -> None:
        assert self.started.acquire(timeout=LIMIT_S)


@contextmanager
def serving(batcher: Batcher) -> Iterator[ThreadPoolExecutor]:
    """The device thread, and a pool of request threads."""
    device = threading.Thread(target=batcher.serve)
    device.start()
    try:
        with ThreadPoolExecutor(16) as requests:
            yield requests
    finally:
        batcher.close()
        device.join(LIMIT_S)
    assert not device.is_alive()


def run(batcher: Batcher, item: int, key: Hashable = None) -> object:
    """A request of one item."""
    (output,) = batcher.infer([item], [key])
    return output


def gather(batcher: Batcher, doubler: Doubler, requests: ThreadPoolExecutor, items: Sequence[int]) -> list[object]:
    """Results of `items` that all wait while the device is busy with a first one."""
    doubler.free.clear()
    first = requests.submit(run, batcher, 0)
    doubler.wait_started()
    others = [requests.submit(run, batcher, item) for item in items]
    wait_until(lambda: batcher.waiting == len(items), batcher)
    doubler.free.set()
    first.result(LIMIT_S)
    return [other.exception(LIMIT_S) or other.result() for other in others]


def wait_until(true: Callable[[], bool], batcher: Batcher) -> None:
    with batcher._changed:
        assert batcher._changed.wait_for(true, LIMIT_S)


def test_a_single_item_runs_at_once_and_gets_its_own_output() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=8))
    with serving(batcher):
        assert run(batcher, 21) == 42


def test_items_that_wait_together_run_together_at_most_max_batch_and_in_order() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=4))
    with serving(batcher) as requests:
        results = gather(batcher, doubler, requests, range(1, 7))

    assert results == [2, 4, 6, 8, 10, 12]
    assert [len(batch) for batch in doubler.batches] == [1, 4, 2]
    assert sorted(item for batch in doubler.batches for item in batch) == list(range(7))


def test_a_full_batch_does_not_wait_out_the_delay() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=2, max_delay_s=LONG_S))
    with serving(batcher) as requests:
        both = [requests.submit(run, batcher, item) for item in (1, 2)]
        assert [one.result(LONG_S / 2) for one in both] == [2, 4]

    assert sorted(doubler.batches[0]) == [1, 2]


def test_a_lone_item_waits_for_company_no_longer_than_the_delay() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=2, max_delay_s=0.01))
    with serving(batcher):
        assert run(batcher, 1) == 2

    assert doubler.batches == [[1]]


def test_items_of_another_key_do_not_share_a_pass() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=8))
    doubler.free.clear()
    with serving(batcher) as requests:
        first = requests.submit(run, batcher, 0)
        doubler.wait_started()
        rest = [requests.submit(run, batcher, item, "odd" if item % 2 else "even") for item in (1, 2, 3, 4)]
        wait_until(lambda: batcher.waiting == 4, batcher)
        doubler.free.set()
        results = [one.result(LIMIT_S) for one in (first, *rest)]

    assert results == [0, 2, 4, 6, 8]
    assert sorted(sorted(batch) for batch in doubler.batches) == [[0], [1, 3], [2, 4]]


def test_only_the_guilty_item_of_a_batch_fails(caplog: pytest.LogCaptureFixture) -> None:
    doubler = Doubler(bad=[3])
    batcher = Batcher(doubler, rules=Rules(max_batch=8))
    with serving(batcher) as requests:
        one, two, three, four = gather(batcher, doubler, requests, [1, 2, 3, 4])

    assert (one, two, four) == (2, 4, 8)
    assert isinstance(three, ModelFault)
    assert str(three) == "forward() raised RuntimeError: cannot double that"
    assert len(doubler.batches) == 1 + 1 + 4


def test_an_error_of_the_contract_reaches_its_caller_as_it_is() -> None:
    def refuse(items: list[int]) -> list[int]:
        raise BadInput("too odd")

    batcher = Batcher(refuse)
    with serving(batcher), pytest.raises(BadInput, match="too odd"):
        run(batcher, 1)


def test_another_number_of_outputs_than_items_is_the_models_fault() -> None:
    batcher = Batcher(lambda items: [])
    with serving(batcher), pytest.raises(ModelFault, match="0 outputs for 1 items"):
        run(batcher, 1)


def test_the_device_thread_lives_on_after_a_fault(caplog: pytest.LogCaptureFixture) -> None:
    batcher = Batcher(Doubler(bad=[1]))
    with serving(batcher):
        with pytest.raises(ModelFault):
            run(batcher, 1)
        assert run(batcher, 2) == 4


def test_new_limits_hold_for_what_already_waits() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=8, max_delay_s=LONG_S))
    with serving(batcher) as requests:
        waiting = requests.submit(run, batcher, 1)
        wait_until(lambda: batcher.waiting == 1, batcher)
        batcher.configure(Rules(max_batch=1))
        assert waiting.result(LONG_S / 2) == 2


def test_a_closed_batcher_answers_what_it_has_and_takes_nothing_new() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=8, max_delay_s=LONG_S))
    with serving(batcher) as requests:
        waiting = requests.submit(run, batcher, 1)
        wait_until(lambda: batcher.waiting == 1, batcher)
        batcher.close()
        assert waiting.result(LONG_S / 2) == 2
        with pytest.raises(Draining):
            run(batcher, 2)


def test_the_size_of_each_batch_is_reported() -> None:
    sizes: list[int] = []
    batcher = Batcher(Doubler(), on_batch=sizes.append)
    with serving(batcher):
        run(batcher, 1)
        run(batcher, 2)

    assert sizes == [1, 1]


def test_a_request_of_many_items_is_split_into_passes_and_answered_in_order() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler, rules=Rules(max_batch=4))
    with serving(batcher):
        assert batcher.infer(range(10), [None] * 10) == [2 * item for item in range(10)]

    assert [len(batch) for batch in doubler.batches] == [4, 4, 2]


def test_of_several_items_the_error_says_which_one_is_at_fault_and_the_rest_is_not_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    doubler = Doubler(bad=[2])
    batcher = Batcher(doubler)
    with serving(batcher):
        with pytest.raises(ModelFault, match="cannot double that") as caught:
            batcher.infer([1, 2, 3], [None] * 3)
        assert run(batcher, 9) == 18

    assert caught.value.item == 1
    assert [1] in doubler.batches


def test_an_item_that_has_not_begun_when_its_time_ends_is_never_run() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler)
    doubler.free.clear()
    with serving(batcher) as requests:
        first = requests.submit(run, batcher, 1)
        doubler.wait_started()
        with pytest.raises(DeadlineExceeded, match=r"had not begun within 0\.01 s"):
            batcher.infer([2], [None], deadline=Deadline.after(0.01, "test"))
        doubler.free.set()
        assert first.result(LIMIT_S) == 2

    assert doubler.batches == [[1]]


def test_an_item_that_is_in_a_pass_when_its_time_ends_is_waited_for() -> None:
    doubler = Doubler()
    batcher = Batcher(doubler)
    doubler.free.clear()
    with serving(batcher) as requests:
        deadline = Deadline.after(0.5, "test")
        late = requests.submit(batcher.infer, [1], [None], deadline=deadline)
        doubler.wait_started()
        with pytest.raises(TimeoutError):
            late.result(0.6)
        assert deadline.remaining_s() == 0.0
        doubler.free.set()
        assert late.result(LIMIT_S) == [2]


def test_what_would_be_too_late_is_refused_while_others_wait_and_never_when_nobody_does() -> None:
    doubler = Doubler()
    times = PassTimes()
    times.assume(60.0)
    batcher = Batcher(doubler, rules=Rules(goal_s=0.2), times=times)
    doubler.free.clear()
    with serving(batcher) as requests:
        first = requests.submit(run, batcher, 1)
        doubler.wait_started()
        second = requests.submit(run, batcher, 2)
        wait_until(lambda: batcher.waiting == 1, batcher)
        with pytest.raises(Overloaded, match="1 items wait before this") as caught:
            run(batcher, 3)
        doubler.free.set()
        assert [first.result(LIMIT_S), second.result(LIMIT_S)] == [2, 4]

    assert 150 < (caught.value.retry_after_s or 0) <= 180


def test_after_a_device_is_lost_nothing_is_retried_and_it_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    passes: list[list[int]] = []
    lost: list[DeviceLost] = []

    def die(items: list[int]) -> list[int]:
        passes.append(items)
        raise RuntimeError("CUDA error: device-side assert triggered")

    batcher = Batcher(die, rules=Rules(max_batch=2), on_lost=lost.append)
    with serving(batcher), pytest.raises(DeviceLost, match="device-side assert"):
        batcher.infer([1, 2], [None, None])

    assert passes == [[1, 2]]
    assert len(lost) == 1


def test_a_pass_that_was_too_large_for_memory_goes_through_item_by_item(caplog: pytest.LogCaptureFixture) -> None:
    def small_device(items: list[int]) -> list[int]:
        if len(items) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return items

    batcher = Batcher(small_device, rules=Rules(max_batch=4))
    with serving(batcher):
        assert batcher.infer([1, 2, 3], [None] * 3) == [1, 2, 3]


def test_a_delay_beyond_what_the_platform_can_wait_does_not_stop_the_device_thread() -> None:
    batcher = Batcher(Doubler(), rules=Rules(max_batch=2, max_delay_s=1e300))
    with serving(batcher) as requests:
        both = [requests.submit(run, batcher, item) for item in (1, 2)]
        assert [one.result(LIMIT_S) for one in both] == [2, 4]
