"""Where things lie, and that socket names always fit."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from gateway_plugin.paths import REPLICA_ID_LENGTH, SOCKET_PATH_LIMIT, Paths


def test_the_run_folder_is_under_home_and_private(tmp_path: Path) -> None:
    paths = Paths(Path("/h"))
    assert paths.run == Path("/h/run")
    home = tmp_path / "home"
    Paths(home).create()
    assert stat.S_IMODE(Paths(home).run.stat().st_mode) == 0o700


def test_a_deep_home_gets_its_sockets_in_a_short_place_whatever_the_shells_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = Paths(tmp_path / ("x" * 100))
    before = paths.run
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert paths.run == before
    longest = paths.replica_http("n" * REPLICA_ID_LENGTH)
    assert len(os.fsencode(longest)) <= SOCKET_PATH_LIMIT


def test_two_deep_homes_do_not_share_a_run_folder(tmp_path: Path) -> None:
    assert Paths(tmp_path / ("x" * 100)).run != Paths(tmp_path / ("y" * 100)).run


def test_removing_the_run_folder_leaves_the_rest(tmp_path: Path) -> None:
    paths = Paths(tmp_path)
    paths.create()
    (paths.run / "a.sock").touch()
    paths.remove_run()
    assert not paths.run.exists()
    assert paths.logs.is_dir()
