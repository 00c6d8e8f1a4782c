"""C30 (LitServe 681): our own test helper returns when the replica serves, and fails with its log when it cannot."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.replica_process import replica

SLOW_SETUP = """
import os

open(os.environ["GATE"]).read()

def handle(event, context):
    return "served"
"""
BROKEN_SETUP = """
raise RuntimeError("the setup is broken: no such model")
"""


def test_a_slow_setup_is_waited_for_and_then_served(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with replica(SLOW_SETUP, {"GATE": str(gate)}) as it, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(it.wait_ready)
        it.wait_for_log("unmanaged")
        returned_early = waiting.done()
        gate.open("w").close()
        waiting.result(timeout=60)

        assert not returned_early
        assert it.call("/", "x").body == b"served"


def test_a_setup_that_raises_fails_the_test_and_shows_why() -> None:
    with replica(BROKEN_SETUP) as it, pytest.raises(AssertionError, match="the setup is broken: no such model"):
        it.wait_ready(timeout_s=60)


def test_a_process_that_ends_fails_the_test_at_once_and_shows_its_log() -> None:
    with replica("import os\nos._exit(3)") as it, pytest.raises(AssertionError, match="its log"):
        it.wait_ready(timeout_s=60)
