"""One machine for the stories that need gateway, agent and replicas together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.machine_under_test import ECHO, MachineUnderTest


@pytest.fixture(scope="session")
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    """A running machine whose replicas take one request at a time; its function `echo` is of no story."""
    machine = MachineUnderTest(tmp_path_factory.mktemp("stories") / "m", GSHARE_MAX_INFLIGHT="1")
    machine.write_function("echo", ECHO)
    machine.write_stack(echo={})
    machine.up()
    yield machine
    machine.close()
