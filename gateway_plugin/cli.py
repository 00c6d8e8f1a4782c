"""The `gshare` command. Thin: each command reads its arguments, calls one function, shows the result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from gateway_plugin.errors import PluginError
from gateway_plugin.settings import Settings

STACK_FILE = "stack.yml"


class _Group(click.Group):
    """Maps our errors to one line and exit code 1, once."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except PluginError as error:
            raise click.ClickException(str(error)) from error


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fast-gshare", prog_name="gshare")
def main() -> None:
    """FaST-GShare for OpenFaaS: deep-learning functions that share GPUs."""


@main.command()
@click.option("-f", "--file", "stack_file", default=STACK_FILE, show_default=True, help="Stack file to apply.")
@click.option("--functions", default="", help="Only these functions of the file, separated by commas.")
def up(stack_file: str, functions: str) -> None:
    """Start everything on this machine and deploy the stack file."""
    from gateway_plugin.up import up as run

    sys.exit(run(_settings(), Path(stack_file), only=_names(functions)))


@main.command()
def down() -> None:
    """Stop everything on this machine; deployed functions come back with the next `up`."""
    from gateway_plugin import machine

    click.echo("everything is stopped" if machine.stop(_settings()) else "nothing was running")


@main.command()
def status() -> None:
    """Show processes, functions, replicas and devices."""
    from gateway_plugin.up import show_status

    sys.exit(show_status(_settings()))


@main.command()
@click.option("-n", "--lines", default=50, show_default=True, help="Lines of each log to begin with.")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines.")
def logs(lines: int, follow: bool) -> None:
    """Show the logs of all processes and replicas."""
    from gateway_plugin.paths import Paths

    folder = Paths(_settings().home).logs
    files = sorted(str(path) for path in folder.rglob("*.log"))
    if not files:
        raise click.ClickException(f"no logs in {folder}; nothing was started with this GSHARE_HOME")
    sys.exit(subprocess.call(["tail", "-v", "-n", str(lines), *(["-F"] if follow else []), *files]))


@main.command()
@click.option("-f", "--file", "stack_file", default=STACK_FILE, show_default=True, help="Stack file to apply.")
@click.option("--functions", default="", help="Only these functions of the file, separated by commas.")
@click.option("-g", "--gateway", default="", help="Gateway URL; default: the one on this machine.")
def deploy(stack_file: str, functions: str, gateway: str) -> None:
    """Deploy or update the functions of a stack file."""
    from gateway_plugin.up import deploy_file

    sys.exit(deploy_file(_settings(), Path(stack_file), only=_names(functions), gateway=gateway))


@main.command()
def doctor() -> None:
    """Check this machine: Python, memory, devices against the installed torch, MPS."""
    from gateway_plugin.node.doctor import run

    sys.exit(run(_settings()))


@main.command()
@click.option("--device", default="", help="Device to test; default: the first one.")
@click.option("--shares", default="0.3,0.6", show_default=True, help="Quotas of the probes, two or more.")
@click.option("--seconds", type=click.FloatRange(1, 600), default=10, show_default=True, help="All probes together.")
@click.option("--disturb", is_flag=True, help="Measure although others use the device; takes time from them.")
@click.option("--passive", is_flag=True, help="Start nothing: only read the ledger and the gateway's counts.")
@click.option("--json", "as_json", is_flag=True, help="Print figures and verdicts as JSON.")
@click.option("--ungated", type=int, multiple=True, help="To see it fail: that probe computes without any token.")
@click.option("--pause-ms", type=click.FloatRange(0, 1000), default=0, help="To see a load that shows nothing: rests.")
def verify(*, passive: bool, as_json: bool, **plan: Any) -> None:
    """Put shares to the test: run probes against each other and hold what they get against what they asked for.

    Exit code 0: all as asked. 1: not. 2: cannot judge, or cannot run as things are.
    """
    from gateway_plugin.verify import command

    try:
        if passive:
            sys.exit(command.run_passive(_settings(), device=plan["device"], as_json=as_json))
        sys.exit(command.run(_settings(), command.plan_of(**plan), as_json=as_json))
    except PluginError as error:
        sys.exit(command.explain(error))


@main.command(context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: tuple[str, ...]) -> None:
    """Measure, with stated definitions; `gshare bench --list` shows what there is."""
    try:
        from bench.frame import main as run
    except ModuleNotFoundError as error:
        raise click.ClickException("benchmarks come with the source tree; run this from a clone") from error
    sys.exit(run(list(arguments)))


def _settings() -> Settings:
    return Settings.from_env(os.environ)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.replace(" ", ",").split(",") if name.strip()]


@main.command(hidden=True)
@click.argument("name")
@click.option("--listen-fd", type=int, default=-1)
def process(name: str, listen_fd: int) -> None:
    """One of the processes of this machine; started by the supervisor, not by people."""
    from gateway_plugin.main import run_process

    run_process(name, _settings(), listen_fd=listen_fd)


if __name__ == "__main__":
    main()
