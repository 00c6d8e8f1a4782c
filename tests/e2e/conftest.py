"""Fixtures of the end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.machine_under_test import ECHO, MachineUnderTest


@pytest.fixture
def fresh_machine(tmp_path: Path) -> Iterator[MachineUnderTest]:
    """A machine that nobody started yet, with one function `echo` in its folder."""
    machine = MachineUnderTest(tmp_path / "m")
    machine.write_function("echo", ECHO)
    yield machine
    machine.close()


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    """A machine that runs `echo`; shared by the tests of one file."""
    machine = MachineUnderTest(tmp_path_factory.mktemp("machine") / "m")
    machine.write_function("echo", ECHO)
    machine.write_stack(echo={})
    machine.up()
    yield machine
    machine.close()
