from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from gshare.calls import Calls
from gshare.deadline import NO_DEADLINE, Deadline
from gshare.errors import DeadlineExceeded, Overloaded

LIMIT_S = 30.0
BRIEF_S = 0.01


class Gate:
    """Work that counts who is inside and waits to be let out."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.entered = threading.Semaphore(0)
        self.inside = 0
        self.most_inside = 0
        self._lock = threading.Lock()

    def pass_through(self) -> str:
        with self._lock:
            self.inside += 1
            self.most_inside = max(self.most_inside, self.inside)
        self.entered.release()
        assert self.open.wait(LIMIT_S)
        with self._lock:
            self.inside -= 1
        return "through"

    def wait_entered(self) -> None:
        assert self.entered.acquire(timeout=LIMIT_S)


class Stuck:
    """Remembers what was reported as stuck."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.reported = threading.Event()

    def __call__(self, reason: str) -> None:
        self.reasons.append(reason)
        self.reported.set()


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def timers() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if isinstance(one, threading.Timer)}


def call(calls: Calls, gate: Gate, deadline: Deadline = NO_DEADLINE) -> str:
    with calls.place(deadline) as place:
        return place.run(gate.pass_through)


def test_what_the_work_returns_or_raises_reaches_the_caller() -> None:
    calls = Calls(limit=1, on_stuck=Stuck())
    with calls.place(NO_DEADLINE) as place:
        assert place.run(lambda: 42) == 42
    with calls.place(NO_DEADLINE) as place, pytest.raises(TimeoutError, match="its own"):
        place.run(lambda: (_ for _ in ()).throw(TimeoutError("its own")))
    assert not calls.full
    calls.close()


def test_beyond_the_limit_a_call_is_refused_at_once(gate: Gate) -> None:
    calls = Calls(limit=2, on_stuck=Stuck())
    with ThreadPoolExecutor(2) as clients:
        running = [clients.submit(call, calls, gate) for _ in range(2)]
        for _ in range(2):
            gate.wait_entered()
        full = calls.full
        with pytest.raises(Overloaded, match="2 calls are in work, the limit here"):
            call(calls, gate)
        gate.open.set()
        assert [one.result(LIMIT_S) for one in running] == ["through"] * 2

    assert full
    assert not calls.full
    calls.close()


def test_calls_that_may_queue_wait_for_their_turn_and_never_run_together_with_too_many(gate: Gate) -> None:
    calls = Calls(limit=1, queue=3, on_stuck=Stuck())
    with ThreadPoolExecutor(4) as clients:
        waiting = [clients.submit(call, calls, gate) for _ in range(4)]
        gate.wait_entered()
        gate.open.set()
        assert [one.result(LIMIT_S) for one in waiting] == ["through"] * 4

    assert gate.most_inside == 1
    calls.close()


def test_a_place_is_free_again_although_nothing_ran_in_it() -> None:
    calls = Calls(limit=1, on_stuck=Stuck())
    with pytest.raises(KeyError), calls.place(NO_DEADLINE):
        raise KeyError
    assert not calls.full
    calls.close()


def test_a_call_beyond_its_deadline_is_given_up_but_keeps_its_place_until_it_ends(gate: Gate) -> None:
    stuck = Stuck()
    calls = Calls(limit=1, on_stuck=stuck)
    with pytest.raises(DeadlineExceeded, match=r"gave no answer within 0.01 s \(test\)"):
        call(calls, gate, Deadline.after(BRIEF_S, "test"))
    gate.wait_entered()
    with pytest.raises(Overloaded):
        call(calls, gate)
    gate.open.set()
    calls._pool.shutdown(wait=True)

    assert not calls.full


def test_a_call_that_goes_on_beyond_the_functions_limit_is_reported(gate: Gate) -> None:
    stuck = Stuck()
    calls = Calls(limit=1, longest_s=BRIEF_S, on_stuck=stuck)
    with pytest.raises(DeadlineExceeded):
        call(calls, gate, Deadline.after(BRIEF_S, "test"))
    assert stuck.reported.wait(LIMIT_S)

    assert stuck.reasons == ["a call went on for 0.01 s beyond its limit of 0.01 s"]
    calls.close()


@pytest.mark.parametrize("longest_s", [LIMIT_S, math.inf])
def test_a_client_that_sets_itself_a_short_limit_makes_nothing_stuck(gate: Gate, longest_s: float) -> None:
    stuck = Stuck()
    calls = Calls(limit=1, longest_s=longest_s, on_stuck=stuck)
    with pytest.raises(DeadlineExceeded):
        call(calls, gate, Deadline.after(BRIEF_S, "X-Timeout"))
    gate.wait_entered()

    assert not stuck.reported.wait(10 * BRIEF_S)
    calls.close()


def test_nothing_is_left_of_an_abandoned_call_that_has_ended(gate: Gate) -> None:
    before = timers()
    calls = Calls(limit=1, longest_s=LIMIT_S, on_stuck=Stuck())
    with pytest.raises(DeadlineExceeded):
        call(calls, gate, Deadline.after(BRIEF_S, "X-Timeout"))
    (timer,) = timers() - before
    gate.open.set()
    timer.join(LIMIT_S / 2)

    assert not timer.is_alive()
    calls.close()


def test_a_queued_call_whose_time_ends_never_runs(gate: Gate) -> None:
    calls = Calls(limit=1, queue=1, on_stuck=Stuck())
    with ThreadPoolExecutor(1) as clients:
        running = clients.submit(call, calls, gate)
        gate.wait_entered()
        with pytest.raises(DeadlineExceeded, match="had not begun"), calls.place(Deadline.after(BRIEF_S, "x")) as place:
            place.run(lambda: pytest.fail("it ran"))
        gate.open.set()
        running.result(LIMIT_S)
    assert not calls.full
    calls.close()
