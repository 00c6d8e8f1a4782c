"""Logs stay bounded while their writers go on."""

from __future__ import annotations

from pathlib import Path

from gateway_plugin.logfiles import cap_logs, tail


def test_a_log_over_its_limit_keeps_its_newest_half_in_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "replicas" / "a.log"
    path.parent.mkdir()
    with path.open("ab") as writer:
        writer.write(b"".join(b"line %04d\n" % number for number in range(1000)))
        writer.flush()
        assert cap_logs(tmp_path, max_bytes=4000) == [path]
        writer.write(b"after\n")
    lines = path.read_text().splitlines()
    assert lines[-2:] == ["line 0999", "after"]
    assert lines[0].startswith("line 0")
    assert path.stat().st_size <= 2010


def test_a_small_log_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    assert cap_logs(tmp_path, max_bytes=4000) == []


def test_the_tail_of_a_log_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert tail(tmp_path / "none.log", lines=3) == ""
    (tmp_path / "a.log").write_text("1\n2\n3\n4\n")
    assert tail(tmp_path / "a.log", lines=2) == "3\n4"


def test_what_cannot_be_cut_does_not_keep_the_others_from_it(tmp_path: Path) -> None:
    (tmp_path / "a.log").mkdir()
    (tmp_path / "b.log").write_bytes(b"x\n" * 100)
    assert cap_logs(tmp_path, max_bytes=100) == [tmp_path / "b.log"]
