"""What `gshare verify` shows: as text, and the same as JSON."""

from __future__ import annotations

import msgspec
from rich.console import Console
from rich.table import Table

from gateway_plugin.verify.figures import Finding, ProbeFigures, Report, Source, Verdict

STYLES = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.UNCLEAR: "yellow"}
HOW = """\
how: every probe does blocks of the same work, as many as it may, and counts them. COUNTED is its blocks per second
among the others, as part of what it would get done with the units for itself: on a GPU its blocks per second alone,
on cores its blocks per second of CPU time. LEDGER is the part of the time in which it held a token, as the scheduler
saw it."""
BUSY_TIME = """\
busy time would prove nothing: what nvidia-smi and top call utilisation is the part of the time in which anything at
all ran. Two probes that take turns keep a device 100 % busy between them, and so does one that takes everything; half
of a GPU's multiprocessors at work read 100 %, too. What counts is how much gets done, so completions are compared."""


def to_json(report: Report) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def show(report: Report, console: Console) -> None:
    """Print it for people."""
    at = report.conditions
    console.print(
        f"{at.device} ({at.kind}, {at.units} units): {len(report.probes)} probes together for {at.seconds:g} s, "
        f"window {1000 * at.window_s:.0f} ms, blocks of {1000 * at.block_s:.1f} ms alone; "
        f"other replicas {at.others:.1%}, other processes {at.elsewhere:.1%}\n"
    )
    console.print(_table(report))
    for probe in report.probes:
        console.print(_load_text(probe))
    for note in report.notes:
        console.print(f"note: {note}")
    console.print(f"\n{HOW}\n{BUSY_TIME}\n")
    console.print(f"[{STYLES[report.verdict]}]{report.verdict}[/]: {report.summary}")


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("FIGURE", "ASKED", "MEASURED", "TOLERANCE", "UNCERTAINTY", "SOURCE", "VERDICT", ""):
        table.add_column(heading, overflow="fold")
    for finding in report.findings:
        table.add_row(
            finding.what,
            f"{finding.asked:.2f}",
            f"{finding.measured:.3f}",
            f"± {finding.tolerance:.2f}",
            f"± {finding.uncertainty:.3f}",
            _source_text(finding),
            f"[{STYLES[finding.verdict]}]{finding.verdict}[/]",
            finding.reason,
        )
    return table


def _source_text(finding: Finding) -> str:
    return "COUNTED" if finding.source is Source.COUNTED else "LEDGER"


def _load_text(probe: ProbeFigures) -> str:
    held = "" if probe.gated else "; told to compute without asking for tokens"
    enough = "enough to judge" if probe.saturating else "too light to judge"
    return (
        f"load of {probe.name}: work at hand {probe.wanted:.0%} of the time, waiting for a token {probe.waited:.0%}: "
        f"{enough}; at most {probe.peak:.2f} in any second; {_speed_text(probe)}{held}"
    )


def _speed_text(probe: ProbeFigures) -> str:
    alone = f"alone {probe.alone_rate:.1f} blocks/s"
    if probe.core_rate is None:
        return f"{alone} ± {probe.noise:.1%}"
    return f"{alone}, among the others {probe.core_rate:.1f} for each second of CPU time"
