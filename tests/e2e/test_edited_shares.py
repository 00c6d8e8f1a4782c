"""stack.yml's shares are edited and redeployed under load: what is used follows, and no request fails."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import requests

from tests.e2e.machine_under_test import PATIENCE_S, MachineUnderTest
from tests.load import Load
from tests.stories.on_an_agent import STEADY

pytestmark = pytest.mark.e2e
SPAN_S = 3.0
TOLERANCE = 0.05
LEAST_BESIDE = 0.4
"""Of 0.6: what a busy machine may cost the neighbour, which asks again after each of its many passes."""
BESIDE = "beside"
EDITED = "edited"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    machine = MachineUnderTest(tmp_path_factory.mktemp("shares") / "m")
    for name in (EDITED, BESIDE):
        machine.write_function(name, STEADY)
    write(machine, partition=1, quota=0.2)
    machine.up()
    yield machine
    machine.close()


def write(machine: MachineUnderTest, *, partition: int, quota: float) -> None:
    machine.write_stack(**{EDITED: {"annotations": share(partition, quota)}, BESIDE: {"annotations": share(1, 0.6)}})


def share(partition: int, quota: float) -> dict[str, str]:
    return {
        "fastgshare/gpu_sm_partition": str(partition),
        "fastgshare/gpu_quota_request": str(quota),
        "fastgshare/gpu_quota_limit": str(quota),
    }


def saturated(machine: MachineUnderTest, stack: ExitStack) -> dict[str, Load]:
    """Both functions, with more requests than their time allows."""
    loads = {
        name: stack.enter_context(Load(machine.port, f"/function/{name}", rate_hz=400, senders=4))
        for name in (EDITED, BESIDE)
    }
    for load in loads.values():
        load.wait_for(20)
    return loads


def used_s(machine: MachineUnderTest) -> dict[str, float]:
    """Device seconds by function, as the node's ledger has them."""
    (ledger,) = requests.get(f"{machine.url}/gshare/ledgers", timeout=PATIENCE_S).json()
    return {name.partition(".")[0]: seconds for name, seconds in ledger["functions"].items()} | {"at": ledger["at_s"]}


def measured(machine: MachineUnderTest) -> dict[str, float]:
    """What fraction of the device's time each function used over some seconds from now on."""
    before = used_s(machine)
    machine.wait(lambda: used_s(machine)["at"] >= before["at"] + SPAN_S, "some seconds have passed")
    after = used_s(machine)
    return {name: (after[name] - before[name]) / (after["at"] - before["at"]) for name in (EDITED, BESIDE)}


def in_force(machine: MachineUnderTest, quota: float) -> bool:
    view = machine.view(EDITED)
    return view.share.quota_limit == quota and all(one.acked_version == one.live_version for one in view.replicas)


def test_an_edited_quota_is_what_is_used_from_then_on_in_the_same_process(machine: MachineUnderTest) -> None:
    write(machine, partition=1, quota=0.2)
    machine.deploy()
    machine.wait(lambda: machine.settled(EDITED) and in_force(machine, 0.2), "the first quota is in force")
    pid = machine.view(EDITED).replicas[0].pid

    with ExitStack() as stack:
        loads = saturated(machine, stack)
        before = measured(machine)
        write(machine, partition=1, quota=0.3)
        machine.deploy()
        machine.wait(lambda: in_force(machine, 0.3), "the new quota is in force")
        after = measured(machine)

    assert before[EDITED] == pytest.approx(0.2, abs=TOLERANCE)
    assert after[EDITED] == pytest.approx(0.3, abs=TOLERANCE)
    assert all(LEAST_BESIDE < span[BESIDE] < 0.6 + TOLERANCE for span in (before, after))
    assert machine.view(EDITED).replicas[0].pid == pid
    assert [load.failures() for load in loads.values()] == [[], []]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core has only one partition")
def test_an_edited_partition_is_a_new_replica_also_where_there_is_no_room_for_both(machine: MachineUnderTest) -> None:
    write(machine, partition=1, quota=0.4)
    machine.deploy()
    machine.wait(lambda: machine.settled(EDITED) and in_force(machine, 0.4), "it lies beside its neighbour")
    old = machine.view(EDITED).replicas[0]

    with Load(machine.port, f"/function/{EDITED}", rate_hz=20, senders=4) as load:
        load.wait_for(10)
        write(machine, partition=100, quota=0.4)  # 0.6 and 0.4 are taken on the first core: not before the old one left
        machine.deploy()
        machine.wait(lambda: machine.settled(EDITED), "the new partition serves")
        load.wait_for(10)

    new = machine.view(EDITED).replicas[0]
    assert new.pid != old.pid
    assert (len(old.units), len(new.units)) == (1, len(os.sched_getaffinity(0)))
    assert load.failures() == []
