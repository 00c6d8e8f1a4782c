"""CPU time of a replica's whole tree, from tables of processes as the kernel shows them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gateway_plugin.node.ungated_cpu import ProcessTree
from gateway_plugin.processes import ProcessStat, read_stats

SUPERVISOR, ROOT, WORKER, CHILD, STRANGER = 10, 100, 101, 102, 500
Table = dict[int, ProcessStat]


def stat(parent: int, own_s: float, *, session: int = ROOT, waited_s: float = 0.0, started: int = 1) -> ProcessStat:
    return ProcessStat("S", parent, session, started, own_s, waited_s)


def table(worker_s: float, **others: ProcessStat) -> Table:
    """The replica's own two processes and a stranger who is busy."""
    known = {
        SUPERVISOR: stat(1, 50.0, session=SUPERVISOR),
        ROOT: stat(SUPERVISOR, 0.1),
        WORKER: stat(ROOT, worker_s),
        STRANGER: stat(SUPERVISOR, 1000 * worker_s, session=STRANGER),
    }
    return known | {int(name.removeprefix("p")): one for name, one in others.items()}


def used_s(*tables: Table) -> float:
    """Between the last two looks."""
    tree = ProcessTree(ROOT)
    return [tree.used_s(one) for one in tables][-1]


def test_the_first_look_begins_the_count_so_that_loading_does_not_count() -> None:
    assert used_s(table(60.0)) == 0.0
    assert used_s(table(60.0), table(60.5)) == pytest.approx(0.5)


def test_a_child_in_a_session_of_its_own_counts() -> None:
    daemon = stat(WORKER, 0.75, session=CHILD)

    assert used_s(table(1.0), table(1.0, p102=daemon)) == pytest.approx(0.75)


def test_a_daemon_that_left_session_and_parent_counts_on() -> None:
    child, daemon = stat(WORKER, 1.0), stat(SUPERVISOR, 1.75, session=CHILD)

    assert used_s(table(1.0, p102=child), table(1.0, p102=daemon)) == pytest.approx(0.75)


def test_what_the_first_process_adopted_counts_though_nobody_saw_it_leave() -> None:
    assert used_s(table(1.0), table(1.0, p102=stat(ROOT, 0.5, session=CHILD))) == pytest.approx(0.5)


def test_a_grandchild_counts_through_a_chain_of_sessions() -> None:
    chain = {"p102": stat(WORKER, 0.1, session=CHILD), "p103": stat(CHILD, 0.2, session=103)}

    assert used_s(table(1.0), table(1.0, **chain)) == pytest.approx(0.3)


def test_a_child_that_was_waited_for_counts_once() -> None:
    before = table(1.0, p102=stat(WORKER, 5.0))
    after = table(1.0)
    after[WORKER] = stat(ROOT, 1.0, waited_s=5.25)

    assert used_s(before, after) == pytest.approx(0.25)


def test_a_child_that_came_and_went_between_two_looks_counts() -> None:
    after = table(1.0)
    after[WORKER] = stat(ROOT, 1.0, waited_s=0.5)

    assert used_s(table(1.0), after) == pytest.approx(0.5)


def test_a_child_that_nobody_waited_for_takes_nothing_off_what_the_others_did() -> None:
    assert used_s(table(1.0, p102=stat(WORKER, 30.0)), table(1.5)) == pytest.approx(0.5)


def test_a_number_that_is_used_again_is_somebody_else() -> None:
    child, stranger = stat(WORKER, 1.0), stat(SUPERVISOR, 9.0, session=CHILD, started=2)

    assert used_s(table(1.0, p102=child), table(1.0, p102=stranger)) == 0.0


def test_a_real_child_that_computes_in_a_session_of_its_own_is_found_in_proc() -> None:
    burn = "import os, time\nos.setsid()\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    tree = ProcessTree(os.getpid())
    tree.used_s(read_stats())
    with subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found_s = tree.used_s(read_stats())
        child.communicate(b"\n")

    assert found_s >= 0.25
