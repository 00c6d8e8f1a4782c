"""B19: a replica starts before its token server listens, and survives it: at its own pace, without a restart."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.replica_process import ReplicaProcess, replica
from tests.stories.on_an_agent import STEADY, STEADY_S
from tests.token_stand import CREDENTIAL, PATIENCE_S, SchedulerProcess, scheduler_process

REQUEST = 0.5


@pytest.fixture
def running() -> Iterator[SchedulerProcess]:
    """A token server that has started, so that its folder is there; it knows no replica yet."""
    with scheduler_process() as process:
        yield process


def test_a_replica_that_starts_before_its_token_server_serves_and_is_held_to_tokens_later(
    running: SchedulerProcess,
) -> None:
    running.kill()
    with _replica(running) as it:
        it.wait_ready()  # after it has waited for the server in vain
        assert it.call("/", "x").status == 200
        alone = it.status()
        running.begin()
        running.stand.register("f", request=REQUEST)
        _wait(lambda: _turn(it)["gating"] == "tokens")
        assert it.call("/", "x").status == 200

        assert "no token scheduler within 0.2 s; pacing itself" in it.log
        assert alone["turn"]["gating"] == "self-paced"
        assert "No such file" in alone["turn"]["reason"]
        assert alone["pid"] == it.status()["pid"]
        assert running.stand.entry("f").tokens >= 1


def test_a_token_server_that_dies_is_replaced_by_the_replicas_own_pace_until_it_is_back(
    running: SchedulerProcess,
) -> None:
    running.stand.register("f", request=REQUEST)
    with _replica(running) as it, _saturated(it) as load:
        it.wait_ready()
        _wait(lambda: load.answered > 10)
        assert _up(it) == 1.0
        pid = it.status()["pid"]

        running.kill()
        _wait(lambda: _turn(it)["gating"] == "self-paced")
        assert _up(it) == 0.0
        used_share = _share_over(it, passes=40)
        running.begin()
        _wait(lambda: _turn(it)["gating"] == "tokens")
        tokens = running.stand.entry("f").tokens
        _wait(lambda: running.stand.entry("f").tokens > tokens or running.stand.entry("f").holding)

        assert _up(it) == 1.0
        assert it.status()["pid"] == pid
        assert 0.5 * REQUEST <= used_share <= 1.2 * REQUEST, "it keeps itself to its guaranteed share"
    assert load.failed == 0


class _Load:
    """Calls a replica from several threads until told to stop."""

    def __init__(self, it: ReplicaProcess) -> None:
        self.answered = self.failed = 0
        self.stop = threading.Event()
        self._it = it

    def run(self) -> None:
        self._it.wait_ready()
        client = self._it.connect()
        while not self.stop.is_set():
            if client.call("/", "x").status == 200:
                self.answered += 1
            else:
                self.failed += 1
        client.close()


@contextmanager
def _saturated(it: ReplicaProcess) -> Iterator[_Load]:
    load = _Load(it)
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(load.run) for _ in range(2)]
        try:
            yield load
        finally:
            load.stop.set()
        for call in calls:
            call.result(PATIENCE_S)


@contextmanager
def _replica(running: SchedulerProcess) -> Iterator[ReplicaProcess]:
    env = {
        "GSHARE_DEVICE": "cpu:0",
        "GSHARE_TOKEN_SOCKET": str(running.stand.folder / "f.sock"),
        "GSHARE_CREDENTIAL": CREDENTIAL,
        "GSHARE_QUOTA_REQUEST": str(REQUEST),
        "GSHARE_NODE_WAIT_S": "0.2",
    }
    with replica(STEADY, env=env) as it:
        yield it


def _turn(it: ReplicaProcess) -> dict[str, Any]:
    turn: dict[str, Any] = it.status()["turn"]
    return turn


def _up(it: ReplicaProcess) -> float:
    """The metric `gshare_token_server_up`."""
    lines = it.call("/metrics").body.decode().splitlines()
    (value,) = [line.rpartition(" ")[2] for line in lines if line.startswith("gshare_token_server_up{")]
    return float(value)


def _share_over(it: ReplicaProcess, *, passes: int) -> float:
    """Device time by time, while it makes so many passes more."""
    begun_s, begun = time.monotonic(), _used_s(it)
    _wait(lambda: _used_s(it) - begun >= passes * STEADY_S)
    return (_used_s(it) - begun) / (time.monotonic() - begun_s)


def _used_s(it: ReplicaProcess) -> float:
    return float(_turn(it)["used_s"])


def _wait(condition: Callable[[], object]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, "it did not come to that"
        time.sleep(0.01)
