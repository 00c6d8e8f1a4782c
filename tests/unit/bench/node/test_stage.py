"""The benchmark's own device: the real scheduler, kept running by the agent's own code."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Return
from gshare.wire import WireError

from bench.figures import BenchError, Context
from bench.node import rogue, round_trip
from bench.node.place import Place
from bench.node.stage import Member, Stage, device_s, stage
from gateway_plugin.settings import Settings

CORES = tuple(sorted(os.sched_getaffinity(0))[:1])


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Stage]:
    with stage(cores=CORES, weights_cache=tmp_path) as made:
        yield made


def linked(member: Member) -> TokenLink:
    return TokenLink.open(member.config.token_socket, member.config.credential, used_s=0.0, timeout_s=30.0)[0]


def wait_for(condition: Callable[[], bool]) -> None:
    until_s = time.monotonic() + 60.0
    while time.monotonic() < until_s:
        with contextlib.suppress(BenchError, OSError, WireError):  # the scheduler was killed on purpose
            if condition():
                return
        time.sleep(0.01)
    pytest.fail("it did not come to that")


def test_a_member_gets_tokens_and_is_in_the_ledger(device: Stage) -> None:
    member = device.join("one", units=(0,), request=0.3, limit=0.6)
    link = linked(member)
    link.send(Acquire(0.01))
    grant = link.wait_for_grant()

    entry = device.entry(member)
    assert (entry.request, entry.limit, entry.holding) == (0.3, 0.6, True)
    assert device_s(entry) > 0

    link.send(Return(grant.token, 0.0))
    device.resize(member, request=0.5, limit=0.5)
    assert (device.entry(member).request, device.entry(member).limit) == (0.5, 0.5)
    link.close()


def test_a_killed_scheduler_comes_back_and_knows_its_members(device: Stage) -> None:
    member = device.join("one", units=(0,), request=0.3, limit=0.6)
    link = linked(member)

    device.kill_scheduler()

    with pytest.raises(WireError):
        link.receive(30.0)
    link.close()
    wait_for(lambda: device.entry(member).request == 0.3)
    again = linked(member)
    again.send(Acquire(0.01))
    assert again.wait_for_grant().token > 0
    again.close()


def test_a_member_that_was_never_there_is_an_error_that_names_it(device: Stage) -> None:
    member = device.join("one", units=(0,), request=0.3, limit=0.6)

    with pytest.raises(BenchError, match="forgotten two"):
        device.entry(Member("two", member.config))


def test_whoever_keeps_its_tokens_loses_them(device: Stage) -> None:
    keeper = device.join("keeper", units=(0,), request=0.5, limit=1.0)
    link = linked(device.join("other", units=(0,), request=0.5, limit=1.0))

    with ThreadPoolExecutor(1) as pool:
        keeping = pool.submit(rogue.keep_tokens, keeper, until_s=time.monotonic() + 1.0)
        while not keeping.done():
            link.send(Acquire(0.01))
            link.send(Return(link.wait_for_grant().token, 0.0))
    link.close()

    assert keeping.result() >= 1
    assert device.entry(keeper).lost >= keeping.result()


def test_the_round_trip_of_a_grant_is_measured_with_its_bounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paces = [replace(pace, asks=20, in_a_row=min(5, pace.in_a_row)) for pace in round_trip.PACES]
    monkeypatch.setattr(round_trip, "PACES", paces)
    monkeypatch.setattr(round_trip, "CONNECTED", 10)
    said: list[str] = []
    context = Context(settings=Settings(home=tmp_path), function="", runs=2, run_s=1.0, max_requests=1, say=said.append)

    figures = round_trip.measure(context, Place(CORES, tmp_path))

    assert [figure.name.rpartition(", ")[2] for figure in figures] == ["p50", "p99"] * 2
    assert all(0 < figure.low <= figure.value <= figure.high and figure.runs == 2 for figure in figures)
    assert [figure.bound is not None for figure in figures] == [True, True, False, False]
    assert said == ["grant round trip, run 1 of 2", "grant round trip, run 2 of 2"]
