"""`gshare verify` on a running machine: it finds the probe that breaks its share, and leaves others and nothing behind.

Other work on the machine can make it impossible to judge, which it then says; it must never be wrong.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
from gshare.wire import Channel, connect

from gateway_plugin.agent_protocol import PROBE_FUNCTION, AskLedgers, Ledgers, Reply
from gateway_plugin.ledger import Entry
from tests.e2e.machine_under_test import MachineUnderTest

pytestmark = pytest.mark.e2e
SHORT = ("--seconds", "2")
"""Too short for two points; long enough to tell a probe that ignores its share."""
CROWDED = 0.5
"""Probes are as nice as replicas: on a core that others use so much they get next to nothing."""
MODEL = """
import time

import torch


class Busy(torch.nn.Module):
    def forward(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            torch.ones(64, 64) @ torch.ones(64, 64)


model = Busy()


def handle(event, context):
    model(0.05)
    return "done"
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    """A machine whose device is one core, with a function that computes on it while it is asked to."""
    core = min(os.sched_getaffinity(0))
    machine = MachineUnderTest(tmp_path_factory.mktemp("verify") / "m", GSHARE_DEVICES=f"cpu:{core}-{core}")
    machine.write_function("busy", MODEL)
    machine.write_stack(busy={"annotations": {"fastgshare/gpu_quota_request": "0.2"}})
    try:
        machine.up()
        yield machine
    finally:
        machine.close()


def verify(machine: MachineUnderTest, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gateway_plugin.cli", "verify", *arguments]
    return subprocess.run(command, cwd=machine.folder, env=machine.env, text=True, capture_output=True, check=False)


def verified(machine: MachineUnderTest, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and report of a run on a device that is idle."""
    machine.wait(lambda: all(entry.share < 0.02 for entry in entries(machine)), "the device is idle")
    done = verify(machine, "--json", *arguments)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    if report["conditions"]["elsewhere"] > CROWDED:
        pytest.skip(f"other processes used {report['conditions']['elsewhere']:.0%} of the core meanwhile")
    return done.returncode, report


def figure(report: dict[str, Any], what: str, source: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        one for one in report["findings"] if one["what"] == what and one["source"].startswith(source)
    )
    return found


def entries(machine: MachineUnderTest) -> list[Entry]:
    channel: Channel[Reply] = connect(str(machine.paths.agent_socket), Reply, timeout_s=30)
    try:
        channel.send(AskLedgers())
        answer = channel.receive()
    finally:
        channel.close()
    assert isinstance(answer, Ledgers)
    return [entry for ledger in answer.ledgers for entry in ledger.entries]


def probes(machine: MachineUnderTest) -> list[Entry]:
    return [entry for entry in entries(machine) if entry.function == PROBE_FUNCTION]


@contextmanager
def requests_to_busy(machine: MachineUnderTest) -> Iterator[None]:
    """One client that sends the next request when it has the answer to the last."""
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            machine.post("busy")

    client = threading.Thread(target=send)
    client.start()
    try:
        yield
    finally:
        ended.set()
        client.join()


def test_on_an_idle_device_no_share_is_broken_and_nothing_is_left(machine: MachineUnderTest) -> None:
    code, report = verified(machine, *SHORT)
    assert (code, report["verdict"]) in [(0, "pass"), (2, "cannot judge")], report
    first, second = (figure(report, f"share of probe {number}", "measured")["measured"] for number in (1, 2))
    assert 0.2 < first < 0.4 < second < 0.75
    assert all(probe["wanted"] > 0.9 and probe["waited"] > 0 for probe in report["probes"])
    machine.wait(lambda: not probes(machine), "the probes are gone from the ledger")
    assert not [path for path in machine.paths.replicas.iterdir() if path.name.startswith("probe-")]


def test_a_probe_that_takes_no_tokens_fails_and_is_named(machine: MachineUnderTest) -> None:
    code, report = verified(machine, *SHORT, "--ungated", "2")
    assert (code, report["verdict"]) == (1, "fail"), report
    assert report["summary"] == "probe 2 broke its share"
    assert figure(report, "share of probe 2", "measured")["measured"] == 0
    assert "without a token" in figure(report, "share of probe 2", "counted")["reason"]


def test_a_load_with_rests_is_told_to_show_nothing(machine: MachineUnderTest) -> None:
    code, report = verified(machine, *SHORT, "--pause-ms", "100")
    assert (code, report["verdict"]) == (2, "cannot judge"), report
    assert "too light to judge" in report["summary"]


def test_a_device_in_use_is_left_alone_and_what_there_is_can_be_read(machine: MachineUnderTest) -> None:
    with requests_to_busy(machine):
        machine.wait(lambda: max(entry.share for entry in entries(machine)) > 0.1, "the device is in use")
        refused = verify(machine, *SHORT)
        assert refused.returncode == 2, refused.stderr
        assert "cpu:0 is in use" in refused.stderr and "busy.openfaas-fn" in refused.stderr
        assert "--disturb" in refused.stderr
        read = verify(machine, "--passive", "--json")
        assert read.returncode == 0, read.stderr
        (line,) = json.loads(read.stdout)["replicas"]
        assert line["function"] == "busy.openfaas-fn" and (line["request"], line["limit"]) == (0.2, 1.0)
        assert line["share"] > 0.1 and line["tokens"] > 0
        assert line["invocations"] > 0
        assert "counted by us: UNGATED" in verify(machine, "--passive").stdout
    answer = requests.get(f"{machine.url}/gshare/functions", timeout=60)
    assert "probe-" not in answer.text


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 2)])
def test_ended_in_the_middle_it_leaves_no_probe_behind(machine: MachineUnderTest, number: int, code: int) -> None:
    command = [sys.executable, "-m", "gateway_plugin.cli", "verify", "--disturb", "--seconds", "60"]
    running = subprocess.Popen(command, cwd=machine.folder, env=machine.env, stderr=subprocess.DEVNULL)
    machine.wait(lambda: any(entry.tokens for entry in probes(machine)), "a probe computes")
    pids = probe_pids(running.pid)
    assert len(pids) == 2
    running.send_signal(number)
    assert running.wait() == code
    machine.wait(lambda: not probes(machine), "the probes are gone from the ledger")
    machine.wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), "their processes have ended")


def probe_pids(parent: int) -> list[int]:
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in children if b"node.probe" in Path(f"/proc/{pid}/cmdline").read_bytes()]
