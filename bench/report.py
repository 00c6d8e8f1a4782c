"""Results as JSON for programs and as Markdown for people."""

from __future__ import annotations

import msgspec

from bench.figures import Figure
from bench.machine import Machine


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one benchmark found."""

    benchmark: str
    description: str
    command: str
    """The line that measured it."""
    measured_at: str
    """RFC 3339."""
    machine: Machine
    figures: tuple[Figure, ...]
    v: int = 1


def to_json(report: Report) -> bytes:
    """One JSON object; every figure carries its definition, its bound and whether that was met."""
    plain = msgspec.to_builtins(report)
    for written, figure in zip(plain["figures"], report.figures, strict=True):
        written["met"] = figure.met
    return msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n"


def to_markdown(report: Report) -> str:
    """A table, the machine it was measured on, and what each figure means."""
    head = [
        f"# {report.benchmark}: {report.description}",
        f"Measured {report.measured_at} with `{report.command}` on {report.machine.title}.",
        "| figure | median | min … max | runs | bound |\n| --- | --: | --: | --: | --- |\n" + "\n".join(_rows(report)),
    ]
    return "\n\n".join([*head, "\n".join(_meanings(report))]) + "\n"


def _meanings(report: Report) -> list[str]:
    """One line for each definition, with the figures it holds for."""
    names: dict[str, list[str]] = {}
    for figure in report.figures:
        names.setdefault(figure.definition, []).append(figure.name)
    return [f"- {'; '.join(named)}: {definition}." for definition, named in names.items()]


def _rows(report: Report) -> list[str]:
    return [
        f"| {figure.name} | {_number(figure.value)} {figure.unit} | {_number(figure.low)} … {_number(figure.high)} "
        f"| {figure.runs} | {_bound_text(figure)} |"
        for figure in report.figures
    ]


def _bound_text(figure: Figure) -> str:
    if figure.bound is None:
        return ""
    return f"{figure.bound.wish} {_number(figure.bound.value)}: {'met' if figure.met else 'NOT met'}"


def _number(value: float) -> str:
    """Three significant digits below 1000, whole numbers above."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
