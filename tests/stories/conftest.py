"""What several stories share: a machine with gateway, agent and replicas, and a model that reads."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.e2e.machine_under_test import ECHO, MachineUnderTest
from tests.served_app import FUNCTIONS, served


@pytest.fixture(scope="session")
def one_at_a_time(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineUnderTest]:
    """A running machine whose replicas take one request at a time; its function `echo` is of no story."""
    machine = MachineUnderTest(tmp_path_factory.mktemp("stories") / "m", GSHARE_MAX_INFLIGHT="1")
    machine.write_function("echo", ECHO)
    machine.write_stack(echo={})
    machine.up()
    yield machine
    machine.close()


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FlaskClient]:
    """bert with a model that finds the word `needle` in any text; see `tests.tiny_reader`."""
    from tests.tiny_reader import write_reader

    root = tmp_path_factory.mktemp("weights")
    write_reader(root / "reader")
    with served(FUNCTIONS / "bert", {"MODEL_WEIGHTS": "file:reader", "GSHARE_WEIGHTS_ROOT": str(root)}) as client:
        yield client
