"""`gshare verify --passive`: starts nothing, reads what ledger and gateway have anyway, and says whose word each is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from rich.console import Console
from rich.table import Table

from gateway_plugin.ledger import Entry, Ledger
from gateway_plugin.verify.figures import SHARE_TOLERANCE, Source

SOURCES: dict[str, Source] = {
    "asked": Source.SCHEDULER,
    "share": Source.BOUNDED,
    "device s": Source.BOUNDED,
    "tokens": Source.SCHEDULER,
    "waited": Source.SCHEDULER,
    "overuse": Source.BOUNDED,
    "lost": Source.SCHEDULER,
    "ungated": Source.COUNTED,
    "invocations": Source.COUNTED,
}
"""Whose word each figure is, in the order of the table."""
MEANINGS = """\
SHARE is the part of the last seconds in which it used its units. DEVICE S, TOKENS, WAITED (with work at hand and no
token), OVERUSE (beyond its slices, charged to what came next), LOST (tokens taken away) and UNGATED (core seconds
without a token, on a CPU alone, from the kernel's account) are totals of the replica, INVOCATIONS the gateway's of the
function. `gshare verify` without --passive puts shares to the test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaLine:
    """One replica as the ledger has it."""

    device: str
    replica: str
    function: str
    request: float
    limit: float
    share: float
    """Of the last `span_s` seconds."""
    span_s: float
    used_s: float
    tokens: int
    waited_s: float
    overused_s: float
    lost: int
    ungated_core_s: float
    connected: bool
    invocations: int | None
    """Of its function; None: the gateway has no count."""
    over_limit: bool
    remark: str
    """What is wrong; empty: nothing."""


@dataclass(frozen=True, slots=True)
class PassiveReport:
    """Everything there is to read."""

    replicas: tuple[ReplicaLine, ...]
    sources: dict[str, Source]

    @property
    def over_limit(self) -> bool:
        """Whether a replica had more than its limit."""
        return any(line.over_limit for line in self.replicas)


def read(ledgers: Sequence[Ledger], invocations: Mapping[str, int]) -> PassiveReport:
    """One line a replica. `invocations`: by function."""
    lines = [_line(ledger, entry, invocations.get(entry.function)) for ledger in ledgers for entry in ledger.entries]
    return PassiveReport(tuple(lines), SOURCES)


def to_json(report: PassiveReport) -> str:
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def show(report: PassiveReport, console: Console) -> None:
    """Print it for people."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("device", "replica", *SOURCES, ""):
        table.add_column(heading.upper(), overflow="fold")
    for line in report.replicas:
        table.add_row(*_cells(line))
    console.print(table)
    if not report.replicas:
        console.print("no replica has a share of a device")
    console.print(f"\n{MEANINGS}\n")
    for source in Source:
        console.print(f"{source}: {', '.join(name.upper() for name, whose in SOURCES.items() if whose is source)}")


def _cells(line: ReplicaLine) -> tuple[str, ...]:
    return (
        line.device,
        line.replica,
        f"{line.request:.2f}–{line.limit:.2f}",
        f"{line.share:.3f} of {line.span_s:.0f} s",
        f"{line.used_s:.1f}",
        str(line.tokens),
        f"{line.waited_s:.1f} s",
        f"{line.overused_s:.2f} s",
        str(line.lost),
        f"{line.ungated_core_s:.1f} s",
        "-" if line.invocations is None else str(line.invocations),
        line.remark,
    )


def _line(ledger: Ledger, entry: Entry, invocations: int | None) -> ReplicaLine:
    return ReplicaLine(
        device=ledger.device,
        replica=entry.replica,
        function=entry.function,
        request=entry.request,
        limit=entry.limit,
        share=entry.share,
        span_s=ledger.span_s,
        used_s=entry.used_s,
        tokens=entry.tokens,
        waited_s=entry.waited_s,
        overused_s=entry.overused_s,
        lost=entry.lost,
        ungated_core_s=entry.ungated_core_s,
        connected=entry.connected,
        invocations=invocations,
        over_limit=entry.share > entry.limit + SHARE_TOLERANCE,
        remark=_remark(entry),
    )


def _remark(entry: Entry) -> str:
    if entry.share > entry.limit + SHARE_TOLERANCE:
        return f"over its limit by {entry.share - entry.limit:.2f}"
    if not entry.connected:
        return "not connected to its scheduler"
    if entry.waiting and entry.share < entry.request - SHARE_TOLERANCE:
        return "waits, and had less than its request"
    return ""
