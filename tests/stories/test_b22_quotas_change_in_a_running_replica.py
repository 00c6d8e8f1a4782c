"""B22: a quota is changed under load: throughput follows, nothing restarts, of several changes the last one holds."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from gshare.wire import Channel, connect

from gateway_plugin.agent_protocol import AskLedgers, Ledgers, Reply
from gateway_plugin.openfaas.gshare_views import GshareFunctionView, ReplicaView
from tests.e2e.machine_under_test import PATIENCE_S, MachineUnderTest
from tests.stories.on_an_agent import ONE_CORE, STEADY

SPAN_S = 2.0
"""The first two seconds after the change show it."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    """A machine of one core with the function `steady`."""
    machine = MachineUnderTest(tmp_path_factory.mktemp("b22") / "m", GSHARE_DEVICES=ONE_CORE)
    machine.write_function("steady", STEADY)
    machine.write_stack(steady={"annotations": _annotations(0.2)})
    machine.up()
    yield machine
    machine.close()


def test_throughput_follows_a_quota_within_two_seconds_in_the_same_process(machine: MachineUnderTest) -> None:
    _put(machine, 0.2)
    before = _acknowledged(machine, 0.2)
    with _saturated(machine) as load:
        slow = load.answers_in(SPAN_S)
        _put(machine, 0.6)
        after = _acknowledged(machine, 0.6)
        fast = load.answers_in(SPAN_S)

    assert (after.pid, after.id) == (before.pid, before.id)
    assert after.live_version > before.live_version
    assert 2.2 <= fast / slow <= 3.8, "three times the time, within what the edges of two seconds blur"
    assert load.failed == 0


def test_of_two_changes_in_a_row_the_last_one_holds(machine: MachineUnderTest) -> None:
    _put(machine, 0.3)
    _put(machine, 0.5)

    assert _acknowledged(machine, 0.5).ack_error == ""


def test_of_two_changes_at_once_one_holds_everywhere_and_none_is_lost_half_way(machine: MachineUnderTest) -> None:
    generation = _view(machine).generation
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda quota: _put(machine, quota), (0.25, 0.75)))

    held = _view(machine).share.quota_limit
    assert held in (0.25, 0.75)
    assert _view(machine).generation == generation + 2
    assert _acknowledged(machine, held).ack_error == ""


class _Load:
    """More calls than the replica's time allows."""

    def __init__(self, machine: MachineUnderTest) -> None:
        self._machine = machine
        self.answered = self.failed = 0
        self._lock = threading.Lock()
        self.stop = threading.Event()

    def run(self) -> None:
        with requests.Session() as session:
            while not self.stop.is_set():
                code = session.post(f"{self._machine.url}/function/steady", data=b"x", timeout=PATIENCE_S).status_code
                with self._lock:
                    self.answered += code == 200
                    self.failed += code != 200

    def answers_in(self, span_s: float) -> int:
        before, begun_s = self.answered, time.monotonic()
        self._machine.wait(lambda: time.monotonic() - begun_s >= span_s, "time passes")
        return self.answered - before


@contextmanager
def _saturated(machine: MachineUnderTest) -> Iterator[_Load]:
    load = _Load(machine)
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(load.run) for _ in range(4)]
        try:
            machine.wait(lambda: load.answered > 4, "calls are answered")
            yield load
        finally:
            load.stop.set()
        for call in calls:
            call.result(PATIENCE_S)


def _annotations(quota: float) -> dict[str, str]:
    return {"fastgshare/gpu_quota_request": str(quota), "fastgshare/gpu_quota_limit": str(quota)}


def _put(machine: MachineUnderTest, quota: float) -> None:
    spec = {"service": "steady", "image": "steady", "annotations": _annotations(quota)}
    answer = requests.put(f"{machine.url}/system/functions", json=spec, timeout=PATIENCE_S)
    assert answer.status_code == 202, answer.text


def _view(machine: MachineUnderTest) -> GshareFunctionView:
    return machine.view("steady")


def _acknowledged(machine: MachineUnderTest, quota: float) -> ReplicaView:
    """The only replica, once function, replica and token scheduler all have this quota in force."""

    def everywhere() -> bool:
        (replica,) = _view(machine).replicas
        return (
            _view(machine).share.quota_limit == quota
            and replica.acked_version == replica.live_version
            and machine.replica_status("steady")["share"]["quota_limit"] == quota
            and _limits(machine.paths.agent_socket) == [quota]
        )

    machine.wait(everywhere, f"quota {quota} is in force")
    (replica,) = _view(machine).replicas
    return replica


def _limits(agent_socket: Path) -> list[float]:
    """The limits that the token scheduler keeps."""
    channel: Channel[Any] = connect(str(agent_socket), Reply, timeout_s=PATIENCE_S)
    try:
        channel.send(AskLedgers())
        answer = channel.receive()
    finally:
        channel.close()
    assert isinstance(answer, Ledgers)
    return [entry.limit for ledger in answer.ledgers for entry in ledger.entries]
