"""News of log files."""

from __future__ import annotations

from pathlib import Path

from gateway_plugin.node.log_follower import LogFollower


def test_only_whole_lines_that_came_since_the_last_look_are_new(tmp_path: Path) -> None:
    first, later = tmp_path / "control.log", tmp_path / "server.log"
    first.write_text("old\n")
    follower = LogFollower([first, later])
    assert follower.new_lines() == []

    first.write_text("old\none\nhalf a li")
    later.write_text("two\n")
    assert follower.new_lines() == ["one", "two"]

    first.write_text("old\none\nhalf a line\n")
    assert follower.new_lines() == ["half a line"]
    assert follower.new_lines() == []


def test_a_log_that_was_cut_is_read_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("a long line of before\n")
    follower = LogFollower([path])
    path.write_text("new\n")
    assert follower.new_lines() == ["new"]


def test_of_a_flood_the_newest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    follower = LogFollower([path])
    path.write_text("x" * 100 + "\n" + "y" * 200_000 + "\nlast\n")
    assert follower.new_lines()[-1] == "last"
    assert follower.new_lines() == []
