"""What is shown of a verification: asked, measured, tolerance, verdict, whether the load sufficed, how it was done."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from rich.console import Console

from gateway_plugin.verify.figures import Conditions, ProbeFigures, Report
from gateway_plugin.verify.judge import judge_shares, overall
from gateway_plugin.verify.report import show, to_json

CONDITIONS = Conditions(
    device="cpu:0",
    kind="cpu",
    units=2,
    window_s=0.2,
    block_s=0.0102,
    seconds=10.0,
    others=0.003,
    elsewhere=0.02,
    degraded="",
)
PROBE = ProbeFigures(
    name="probe 1",
    asked=0.3,
    gated=True,
    alone_rates=(100.0, 100.0),
    together_rate=30.1,
    ledger_share=0.302,
    by_second=(30, 32, 12),
    wanted=1.0,
    waited=0.7,
    elsewhere=0.01,
    core_rate=None,
    edge=0.005,
    lost_scheduler="",
)
FREE = replace(PROBE, name="probe 2", asked=0.6, gated=False, together_rate=65.0, ledger_share=0.0, waited=0.0)


def a_report(*probes: ProbeFigures) -> Report:
    findings = judge_shares(probes, others=0.0)
    verdict, summary = overall(findings)
    return Report(
        verdict=verdict, summary=summary, conditions=CONDITIONS, probes=probes, findings=findings, notes=("one unit",)
    )


def text_of(report: Report) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_text_has_every_figure_the_load_and_the_reason_why_busy_time_is_none() -> None:
    text = text_of(a_report(PROBE))
    for part in (
        "window 200 ms, blocks of 10.2 ms alone; other replicas 0.3%, other processes 2.0%",
        "share of probe 1",
        "0.30",
        "0.301",
        "0.302",
        "± 0.02",
        "COUNTED",
        "LEDGER",
        "load of probe 1: work at hand 100% of the time, waiting for a token 70%: enough to judge",
        "at most 0.32 in any second",
        "busy time would prove nothing",
        "note: one unit",
        "pass: every share is as asked",
    ):
        assert part in text


def test_a_probe_that_was_let_free_is_said_to_be_and_named_in_the_last_line() -> None:
    text = text_of(a_report(PROBE, FREE))
    assert "told to compute without asking for tokens" in text
    assert text.strip().splitlines()[-1] == "fail: probe 2 broke its share"


def test_on_cores_the_speed_meanwhile_is_shown_beside_the_one_alone_and_on_a_gpu_how_sure_that_is() -> None:
    assert "alone 100.0 blocks/s ± 0.0%" in text_of(a_report(PROBE))
    on_cores = text_of(a_report(replace(PROBE, core_rate=98.0)))
    assert "alone 100.0 blocks/s, among the others 98.0 for each second of CPU time" in on_cores


def test_json_has_the_same_verdicts_as_the_text() -> None:
    report = a_report(PROBE, FREE)
    told = json.loads(to_json(report))
    assert told["verdict"] == "fail"
    assert [one["verdict"] for one in told["findings"]] == [one.verdict for one in report.findings]
    assert told["conditions"]["window_s"] == 0.2
    assert told["probes"][1]["gated"] is False
