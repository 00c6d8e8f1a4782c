"""Lines to paste and tables to read."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from gateway_plugin.supervisor.protocol import ProcessStatus
from gateway_plugin.views import curl_line, processes_table


def test_a_curl_line_names_type_file_and_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = curl_line("bert", tmp_path / "functions" / "bert" / "sample.json", url="http://127.0.0.1:8080")
    assert shlex.split(line) == [
        "curl",
        "-s",
        "-H",
        "Content-Type: application/json",
        "--data-binary",
        "@functions/bert/sample.json",
        "http://127.0.0.1:8080/function/bert",
    ]


def test_a_sample_elsewhere_is_named_in_full_and_quoted() -> None:
    line = curl_line("x", Path("/far away/sample.bin"), url="http://h")
    assert "'@/far away/sample.bin'" in line
    assert "application/octet-stream" in line


def test_a_process_that_waits_shows_how_it_ended() -> None:
    table = processes_table([ProcessStatus(name="api", state="waiting", restarts=3, last_exit="killed by signal 9")])
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["api"]
    assert cells[2] == ["-"]
    assert cells[5] == ["killed by signal 9"]
