"""`gshare doctor`: looks at this machine and says, line by line, what is sound and how to mend what is not."""

from __future__ import annotations

import click

from gateway_plugin.node.diagnosis import Finding, Level, examine
from gateway_plugin.node.machine_facts import collect
from gateway_plugin.settings import Settings

_COLOURS = {Level.OK: "green", Level.WARNING: "yellow", Level.PROBLEM: "red"}


def run(settings: Settings) -> int:
    """Print every finding; the exit code is 1 if there is a problem."""
    findings = examine(collect(settings))
    for finding in findings:
        click.echo(render(finding))
    return int(any(finding.level is Level.PROBLEM for finding in findings))


def render(finding: Finding) -> str:
    """A line, and another with the remedy where one is needed."""
    mark = click.style(f"{finding.level:8}", fg=_COLOURS[finding.level])
    line = f"{mark} {finding.name}: {finding.text}"
    return f"{line}\n         → {finding.remedy}" if finding.remedy else line
