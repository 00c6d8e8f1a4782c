"""The watch over device use without tokens: ledgers and process tables of a test's own, real judgement."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Place, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.node.ungated_watch import UngatedWatch
from gateway_plugin.processes import ProcessStat
from tests.ledger_entries import entry

PID = 100
SPEC = ReplicaSpec(
    id="f-1", function="f.openfaas-fn", revision="r", code_digest="d", slot=0, place=Place("cpu:0", (0,))
)
READY = ReplicaStatus(spec=SPEC, state=ReplicaState.READY, pid=PID)


class Scene:
    """One replica whose CPU and token time a test lets go on."""

    def __init__(self) -> None:
        self.status = READY
        self.reports: list[bool] = []
        self._at_s = self._cpu_s = 1000.0
        self._token_s = 0.0
        self.watch = UngatedWatch(
            statuses=lambda: [self.status],
            report=lambda _, ungated: self.reports.append(ungated),
            read=lambda: {PID: ProcessStat("R", 1, PID, 1, self._cpu_s, 0.0)},
        )

    def go(self, seconds: int, *, cpu: float = 0.0, tokens: float = 0.0, step_s: float = 1.0) -> None:
        """That long, with so many cores used and so much of the time a token, looked at each `step_s`."""
        for _ in range(seconds):
            self._at_s += step_s
            self._cpu_s += cpu * step_s
            self._token_s += tokens * step_s
            asyncio.run(self.watch.look(self._ledger()))

    def entered_core_s(self) -> float:
        (entered,) = self.watch.entered(self._ledger()).entries
        return entered.ungated_core_s

    def _ledger(self) -> Ledger:
        seen = entry(replica=SPEC.id, function=SPEC.function, used_s=self._token_s)
        return Ledger(device="cpu:0", at_s=self._at_s, span_s=10.0, entries=(seen,), functions={})


def test_use_with_tokens_is_reported_as_such() -> None:
    scene = Scene()

    scene.go(20, cpu=1.0, tokens=1.0)

    assert set(scene.reports) == {False}
    assert scene.entered_core_s() == 0


def test_use_without_tokens_is_an_event_once_when_it_begins_and_once_when_it_ends(
    caplog: pytest.LogCaptureFixture,
) -> None:
    scene = Scene()
    caplog.set_level(logging.INFO)

    scene.go(10, cpu=0.9, tokens=0.1)
    scene.go(20)

    assert (scene.reports[8], scene.reports[-1]) == (True, False)
    begun, ended = caplog.messages
    assert begun.startswith("f-1: ungated_device_use: it uses 0.90 cores, its tokens stand for 0.10")
    assert "no ungated_device_use any more" in ended
    assert scene.entered_core_s() > 0


def test_loading_does_not_count() -> None:
    scene = Scene()
    scene.status = msgspec.structs.replace(READY, state=ReplicaState.STARTING)
    scene.go(20, cpu=1.0)
    scene.status = READY

    scene.go(20, cpu=0.1)

    assert set(scene.reports) == {False}


def test_time_without_a_scheduler_is_not_judged_since_replicas_pace_themselves_then() -> None:
    scene = Scene()
    scene.go(3, cpu=0.1)

    scene.go(5, cpu=1.0, step_s=30.0)

    assert set(scene.reports) == {False}


def test_a_replica_that_is_gone_is_forgotten() -> None:
    scene = Scene()
    scene.go(10, cpu=1.0)
    scene.status = msgspec.structs.replace(READY, state=ReplicaState.FAILED, pid=0)

    scene.go(1)

    assert scene.entered_core_s() == 0
