import click
import pytest

from gateway_plugin.node import doctor
from gateway_plugin.node.diagnosis import Finding, Level
from gateway_plugin.settings import Settings


@pytest.fixture
def this_machine(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """What the examination finds; the test fills it in."""
    findings: list[Finding] = []
    monkeypatch.setattr(doctor, "collect", lambda settings: None)
    monkeypatch.setattr(doctor, "examine", lambda facts: findings)
    return findings


@pytest.mark.parametrize(("level", "exit_code"), [(Level.OK, 0), (Level.WARNING, 0), (Level.PROBLEM, 1)])
def test_only_a_problem_fails_the_command(this_machine: list[Finding], level: Level, exit_code: int) -> None:
    this_machine.append(Finding(level, "port", "8080"))

    assert doctor.run(Settings()) == exit_code


def test_every_finding_is_a_line_and_a_remedy_stands_below_its_own(
    this_machine: list[Finding], capsys: pytest.CaptureFixture[str]
) -> None:
    this_machine += [
        Finding(Level.OK, "python", "3.12.1"),
        Finding(Level.PROBLEM, "port", "8080 is taken", "make up GSHARE_PORT=8090"),
    ]

    doctor.run(Settings())

    assert click.unstyle(capsys.readouterr().out).splitlines() == [
        "ok       python: 3.12.1",
        "problem  port: 8080 is taken",
        "         → make up GSHARE_PORT=8090",
    ]
