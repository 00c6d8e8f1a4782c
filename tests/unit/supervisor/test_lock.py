"""The lock that names who supervises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway_plugin.supervisor.lock import holder, take


def test_the_lock_names_its_holder_and_nobody_else_gets_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    descriptor = take(path)
    assert descriptor is not None
    assert take(path) is None
    found = holder(path)
    assert found is not None
    assert found.pid == os.getpid()
    os.close(descriptor)
    again = take(path)
    assert again is not None
    os.close(again)


@pytest.mark.parametrize("text", ["", "17", '{"pid":1,"start_ticks":-1,"boot_id":""}'])
def test_a_lock_without_a_living_holder_names_nobody(tmp_path: Path, text: str) -> None:
    assert holder(tmp_path / "none") is None
    assert holder(Path("/dev/null/lock")) is None
    (tmp_path / "lock").write_text(text)
    assert holder(tmp_path / "lock") is None
