"""Lines to paste and tables to read."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from gateway_plugin.model import FunctionRecord, FunctionSpec, FunctionStatus, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.openfaas.gshare_views import gshare_function_view
from gateway_plugin.supervisor.protocol import ProcessStatus
from gateway_plugin.views import curl_line, functions_table, processes_table, trouble


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


def test_a_function_whose_replica_is_not_held_to_its_partition_says_why() -> None:
    record = FunctionRecord(
        spec=FunctionSpec(service="f", image="f"), replicas=1, revision="r", code_digest="d", created_at=""
    )
    spec = ReplicaSpec(id="f-1", function=record.name, revision="r", code_digest="d", slot=0)
    replica = ReplicaStatus(spec=spec, state=ReplicaState.READY, degraded="MPS for GPU-1: no answer")
    status = FunctionStatus(name=record.name, ready=1, replicas=(replica,))
    view = gshare_function_view(record, status, invocations=0, devices=[])
    assert view.replicas[0].degraded == "MPS for GPU-1: no answer"
    assert trouble(view) == "degraded: MPS for GPU-1: no answer"


def test_a_replica_that_computes_without_tokens_is_named() -> None:
    record = FunctionRecord(
        spec=FunctionSpec(service="f", image="f"), replicas=1, revision="r", code_digest="d", created_at=""
    )
    spec = ReplicaSpec(id="f-1", function=record.name, revision="r", code_digest="d", slot=0)
    replica = ReplicaStatus(spec=spec, state=ReplicaState.READY, ungated_device_use=True)
    status = FunctionStatus(name=record.name, ready=1, replicas=(replica,))
    view = gshare_function_view(record, status, invocations=0, devices=[])
    assert trouble(view) == "ungated_device_use: f-1 uses its cores beyond its tokens"
    assert view.share.enforced == (), "a plain function has no share"


def test_a_url_stays_whole_beside_a_long_name_and_reason() -> None:
    record = FunctionRecord(
        spec=FunctionSpec(service="f" * 40, image="f"), replicas=1, revision="r", code_digest="d", created_at=""
    )
    status = FunctionStatus(name=record.name, pending=1, reason="needs " + 300 * "9" + " MiB of memory")
    view = gshare_function_view(record, status, invocations=0, devices=[])
    output = io.StringIO()
    Console(file=output, width=120).print(functions_table([view], devices=[], url="http://127.0.0.1:18080"))
    assert f"http://127.0.0.1:18080/function/{40 * 'f'}" in output.getvalue()
