"""The scheduler's event loop and its clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from gateway_plugin.node.tokens.poller import Poller


@pytest.fixture
def poller() -> Iterator[Poller]:
    made = Poller()
    yield made
    made.close()


@pytest.fixture
def event() -> Iterator[int]:
    descriptor = os.eventfd(0, os.EFD_NONBLOCK)
    yield descriptor
    os.close(descriptor)


def wait_until(poller: Poller, at_s: float) -> None:
    """As the scheduler does: it may be woken early, and then waits again."""
    while time.monotonic() < at_s:
        poller.wait(at_s)


def test_it_wakes_at_its_time_not_before(poller: Poller) -> None:
    for wait_s in (0.0005, 0.003, 0.02):
        at_s = time.monotonic() + wait_s
        wait_until(poller, at_s)
        assert time.monotonic() >= at_s


def test_a_time_that_is_put_off_is_waited_for_to_its_end(poller: Poller, event: int) -> None:
    seen: list[int] = []
    poller.add(event, lambda: seen.append(os.eventfd_read(event)))
    os.eventfd_write(event, 1)
    poller.wait(time.monotonic() + 0.01)  # woken by the event: the clock is still set to that time
    at_s = time.monotonic() + 0.05

    wait_until(poller, at_s)

    assert seen == [1]
    assert time.monotonic() >= at_s


def test_a_time_that_is_brought_forward_holds(poller: Poller, event: int) -> None:
    seen: list[int] = []
    poller.add(event, lambda: seen.append(os.eventfd_read(event)))
    os.eventfd_write(event, 1)
    poller.wait(time.monotonic() + 3600.0)

    wait_until(poller, time.monotonic() + 0.01)  # an hour, if it did not


def test_what_can_be_read_is_called_for_without_waiting(poller: Poller, event: int) -> None:
    calls: list[int] = []
    poller.add(event, lambda: calls.append(os.eventfd_read(event)))
    os.eventfd_write(event, 3)

    poller.wait(0.0)
    poller.remove(event)
    os.eventfd_write(event, 1)
    poller.wait(0.0)

    assert calls == [3]
