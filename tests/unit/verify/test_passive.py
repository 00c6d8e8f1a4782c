"""What `--passive` reads: each figure with whose word it is, and replicas that stand out."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.verify.figures import Source
from gateway_plugin.verify.passive import SOURCES, PassiveReport, read, show, to_json
from tests import ledger_entries


def entry(
    *, share: float = 0.2, request: float = 0.2, limit: float = 0.5, connected: bool = True, waiting: bool = False
) -> Entry:
    return ledger_entries.entry(
        request=request,
        limit=limit,
        used_s=12.5,
        share=share,
        tokens=34,
        waited_s=5.6,
        overused_s=0.78,
        lost=9,
        connected=connected,
        waiting=waiting,
        ungated_core_s=4.25,
    )


def report(*entries: Entry, invocations: int | None = 21) -> PassiveReport:
    counts = {} if invocations is None else {"f.openfaas-fn": invocations}
    return read([Ledger("cpu:0", 100.0, 10.0, entries, {})], counts)


def text_of(shown: PassiveReport) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(shown, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_line_has_every_figure_and_each_figure_its_source() -> None:
    text = text_of(report(entry()))
    for cell in ("cpu:0", "f-1", "0.20–0.50", "0.200 of 10 s", "12.5", "34", "5.6 s", "0.78 s", "9", "4.2 s", "21"):
        assert cell in text
    assert "\nself-reported while alone on its units, " in text and ": SHARE, DEVICE S, OVERUSE" in text
    assert "\nmeasured by the scheduler: ASKED, TOKENS, WAITED, LOST" in text
    assert "\ncounted by us: UNGATED, INVOCATIONS" in text
    assert set(SOURCES.values()) == set(Source)


@pytest.mark.parametrize(
    ("one", "remark", "over"),
    [
        (entry(), "", False),
        (entry(share=0.515), "", False),
        (entry(share=0.6), "over its limit by 0.10", True),
        (entry(share=0.1, waiting=True), "waits, and had less than its request", False),
        (entry(share=0.1), "", False),
        (entry(connected=False), "not connected to its scheduler", False),
    ],
)
def test_what_stands_out_is_remarked_on(one: Entry, remark: str, over: bool) -> None:
    shown = report(one)
    assert shown.replicas[0].remark == remark
    assert shown.over_limit is over
    assert remark in text_of(shown)


def test_without_a_gateway_there_is_no_count_rather_than_none_made() -> None:
    shown = report(entry(), invocations=None)
    assert shown.replicas[0].invocations is None
    assert json.loads(to_json(shown))["replicas"][0]["invocations"] is None


def test_json_says_the_same_with_the_sources() -> None:
    told = json.loads(to_json(report(entry())))
    assert told["replicas"][0]["share"] == 0.2
    assert told["sources"]["tokens"] == "measured by the scheduler"


def test_a_device_without_replicas_says_so() -> None:
    assert "no replica has a share of a device" in text_of(report())
