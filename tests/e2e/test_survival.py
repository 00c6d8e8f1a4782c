"""Under load: changes lose no request, and what is killed comes back by itself."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest
import requests

from tests.e2e.machine_under_test import ECHO, MachineUnderTest
from tests.load import Load

pytestmark = pytest.mark.e2e
SENDERS = 8


def under_load(machine: MachineUnderTest, change: Callable[[], object], settled: Callable[[], object]) -> Load:
    """Load before, during and after a change, until it has settled."""
    with Load(machine.port, "/function/echo", rate_hz=60, senders=SENDERS) as load:
        load.wait_for(20)
        change()
        machine.wait(settled, "settled")
        load.wait_for(40)
    return load


def redeploy(machine: MachineUnderTest, **entry: object) -> None:
    machine.write_stack(echo=dict(entry))
    machine.deploy()


def version_of(machine: MachineUnderTest) -> str:
    version: str = machine.post("echo").json()["version"]
    return version


def test_new_code_answers_after_a_redeploy_and_no_request_fails(machine: MachineUnderTest) -> None:
    def change() -> None:
        machine.write_function("echo", ECHO.replace('"one"', '"two"'))
        redeploy(machine)

    load = under_load(machine, change, lambda: version_of(machine) == "two" and machine.settled("echo"))
    assert load.failures() == []
    first = machine.view("echo")
    machine.deploy()
    again = machine.view("echo")
    assert (again.revision, again.generation) == (first.revision, first.generation), "nothing changed, nothing rolled"
    assert [one.pid for one in again.replicas] == [one.pid for one in first.replicas]


def test_the_replica_count_follows_its_label_and_no_request_fails(machine: MachineUnderTest) -> None:
    label = {"com.openfaas.scale.min": "3"}
    up = under_load(machine, lambda: redeploy(machine, labels=label), lambda: machine.settled("echo", replicas=3))
    assert up.failures() == []
    scale = f"{machine.url}/system/scale-function/echo"
    label = {"com.openfaas.scale.min": "1"}
    redeploy(machine, labels=label)
    down = under_load(
        machine,
        lambda: subprocess.run(["curl", "-sf", "-d", '{"serviceName":"echo","replicas":1}', scale], check=True),
        lambda: machine.settled("echo"),
    )
    assert down.failures() == []


def test_a_new_environment_arrives_in_a_new_replica_and_no_request_fails(machine: MachineUnderTest) -> None:
    load = under_load(
        machine,
        lambda: redeploy(machine, environment={"SETTING": "here"}),
        lambda: machine.post("echo").json()["setting"] == "here" and machine.settled("echo"),
    )
    assert load.failures() == []


def test_live_settings_change_in_the_running_replica(machine: MachineUnderTest) -> None:
    share = {"fastgshare/gpu_sm_partition": "24", "fastgshare/gpu_quota_request": "0.1", "fastgshare/gpu_mem": "256Mi"}
    redeploy(machine, annotations=share)
    machine.wait(
        lambda: machine.settled("echo") and machine.view("echo").replicas[0].device, "the pinned replica serves"
    )
    before = machine.replica_status("echo")
    changed = share | {"fastgshare/slo_ms": "42", "fastgshare/gpu_mem": "512Mi", "fastgshare/gpu_quota_limit": "0.5"}
    load = under_load(
        machine,
        lambda: redeploy(machine, annotations=changed),
        lambda: machine.replica_status("echo")["live"]["slo_ms"] == 42,
    )
    after = machine.replica_status("echo")
    assert load.failures() == []
    assert after["pid"] == before["pid"]
    assert after["live"]["memory_bytes"] == 512 * 1024**2
    assert after["live"]["quota_limit"] == 0.5
    machine.wait(lambda: machine.view("echo").replicas[0].acked_version == after["live_version"], "acknowledged")
    redeploy(machine)
    machine.wait(lambda: machine.settled("echo") and not machine.view("echo").replicas[0].device, "plain again")


def test_a_new_revision_that_cannot_load_leaves_the_old_one_serving(machine: MachineUnderTest) -> None:
    good = (machine.functions / "echo" / "handler.py").read_text()

    def change() -> None:
        machine.write_function("echo", "raise RuntimeError('no such model')\n")
        redeploy(machine)

    load = under_load(machine, change, lambda: machine.view("echo").failures >= 1)
    assert load.failures() == []
    assert "no such model" in machine.view("echo").reason
    machine.write_function("echo", good)
    redeploy(machine)
    machine.wait(lambda: machine.settled("echo"), "the mended function serves")


def test_what_has_no_room_is_pending_with_its_reason_and_the_rest_serves(machine: MachineUnderTest) -> None:
    machine.write_function("huge", ECHO)
    machine.write_stack(echo={}, huge={"annotations": {"fastgshare/gpu_mem": "9999Gi"}})
    printed = machine.up()
    assert "pending" in printed
    assert "MiB of memory" in machine.view("huge").reason
    assert machine.post("echo").status_code == 200
    assert subprocess.call(["curl", "-sf", "-X", "DELETE", "-d", '{"functionName":"huge"}', _functions(machine)]) == 0


def test_a_function_that_was_just_accepted_can_be_called_at_once(machine: MachineUnderTest) -> None:
    machine.write_function("fresh", ECHO)
    body = {"service": "fresh", "image": "fresh"}
    assert requests.post(_functions(machine), json=body, timeout=60).status_code == 202
    assert machine.post("fresh").status_code == 200
    assert requests.delete(_functions(machine), json={"functionName": "fresh"}, timeout=60).status_code == 202


def test_scaled_to_zero_the_next_requests_wake_it_and_none_fails(machine: MachineUnderTest) -> None:
    scale = f"{machine.url}/system/scale-function/echo"
    subprocess.run(["curl", "-sf", "-d", '{"serviceName":"echo","replicas":0}', scale], check=True)
    machine.wait(lambda: machine.settled("echo", replicas=0), "at zero")
    with Load(machine.port, "/function/echo", rate_hz=200, senders=40) as load:
        load.wait_for(80)
    assert load.failures() == []
    assert machine.settled("echo")


@pytest.mark.parametrize("name", ["api", "loop", "agent", "redis"])
def test_a_killed_process_is_back_and_no_request_of_a_function_is_lost(machine: MachineUnderTest, name: str) -> None:
    old = machine.process_pids()[name]
    load = under_load(
        machine,
        lambda: os.kill(old, signal.SIGKILL),
        lambda: machine.process_pids()[name] not in (0, old) and machine.settled("echo"),
    )
    assert load.failures() == []


def test_a_killed_data_plane_worker_loses_only_its_own_connections(machine: MachineUnderTest) -> None:
    old = machine.process_pids()["dataplane-0"]
    load = under_load(
        machine,
        lambda: os.kill(old, signal.SIGKILL),
        lambda: machine.process_pids()["dataplane-0"] not in (0, old) and machine.post("echo").status_code == 200,
    )
    lost = load.failures()
    assert len(lost) <= SENDERS, "each sender had one connection to it"
    assert {answer.status for answer in lost} <= {0}


@pytest.mark.parametrize("part", ["master", "worker"])
def test_a_killed_replica_is_replaced_and_loses_only_what_it_had_in_flight(
    machine: MachineUnderTest, part: str
) -> None:
    replica = machine.view("echo").replicas[0]
    worker = machine.replica_status("echo")["pid"]
    load = under_load(
        machine,
        lambda: os.kill(replica.pid if part == "master" else worker, signal.SIGKILL),
        lambda: machine.settled("echo") and machine.replica_status("echo")["pid"] != worker,
    )
    lost = load.failures()
    assert len(lost) <= SENDERS
    assert {answer.status for answer in lost} <= {503}


def test_a_killed_supervisor_is_replaced_by_up_which_adopts_everything(machine: MachineUnderTest) -> None:
    before = machine.process_pids()

    def change() -> None:
        os.kill(machine.supervisor_pid(), signal.SIGKILL)
        machine.wait(lambda: not machine.process_pids(), "the supervisor is gone")
        machine.write_stack(echo={})
        machine.up()

    load = under_load(machine, change, lambda: machine.settled("echo"))
    assert load.failures() == []
    assert machine.process_pids() == before
    adopted = before["dataplane-0"]
    again = under_load(
        machine,
        lambda: os.kill(adopted, signal.SIGKILL),
        lambda: machine.process_pids()["dataplane-0"] not in (0, adopted) and machine.post("echo").status_code == 200,
    )
    assert len(again.failures()) <= SENDERS, "its listener was handed over, so connects waited"


def _functions(machine: MachineUnderTest) -> str:
    return f"{machine.url}/system/functions"
