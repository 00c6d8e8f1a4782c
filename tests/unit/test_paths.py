"""Where things lie, and that socket names always fit."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from gateway_plugin.paths import REPLICA_ID_LENGTH, SOCKET_PATH_LIMIT, Paths


def test_the_run_folder_is_under_home_and_private(tmp_path: Path) -> None:
    paths = Paths(Path("/h"))
    assert paths.run == Path("/h/run")
    home = tmp_path / "home"
    Paths(home).create()
    assert stat.S_IMODE(Paths(home).run.stat().st_mode) == 0o700


def test_a_deep_home_gets_its_sockets_under_the_temporary_folder(tmp_path: Path) -> None:
    paths = Paths(tmp_path / ("x" * 100))
    assert paths.run.parent == Path(tempfile.gettempdir())
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
