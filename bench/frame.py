"""`gshare bench`: list benchmarks, run one, keep its result."""

from __future__ import annotations

import os
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from bench.batching import BatchingBenchmark
from bench.figures import BenchError, Benchmark, Context
from bench.gateway import GatewayBenchmark
from bench.machine import this_machine
from bench.node.benchmark import NodeBenchmark
from bench.report import Report, to_json, to_markdown
from bench.serving import FunctionsBenchmark
from gateway_plugin.settings import Settings

BENCHMARKS: tuple[Benchmark, ...] = (
    GatewayBenchmark(),
    FunctionsBenchmark(),
    BatchingBenchmark(),
    NodeBenchmark(),
)


def main(arguments: list[str]) -> int:
    """Run `gshare bench ARGUMENTS` and return its exit code. Raises: click.ClickException, SettingsError."""
    return int(bench.main(arguments, prog_name="gshare bench", standalone_mode=False) or 0)


@click.command(short_help="Measure this installation.")
@click.argument("name", required=False)
@click.option("--list", "list_only", is_flag=True, help="Only list the benchmarks.")
@click.option("--function", default="resnet50", show_default=True, help="Deployed function to send requests to.")
@click.option("--runs", type=click.IntRange(1, 50), default=5, show_default=True, help="Times each side is measured.")
@click.option(
    "--run-s", type=click.FloatRange(0.1, 60), default=3.0, show_default=True, help="Longest time of one measurement."
)
@click.option("--max-requests", type=click.IntRange(1, 100_000), default=2000, show_default=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for NAME.json and NAME.md; none: only print.",
)
def bench(
    *, name: str | None, list_only: bool, function: str, runs: int, run_s: float, max_requests: int, out: Path | None
) -> None:
    """Run benchmark NAME against what runs on this machine, and print its figures with their definitions."""
    if list_only or name is None:
        for benchmark in BENCHMARKS:
            click.echo(f"{benchmark.name:10} {benchmark.description}")
        return
    context = Context(
        settings=Settings.from_env(os.environ),
        function=function,
        runs=runs,
        run_s=run_s,
        max_requests=max_requests,
        say=_say,
    )
    report = _run(_find(name), context)
    click.echo(to_markdown(report))
    if out is not None:
        _write(report, out)


def _find(name: str) -> Benchmark:
    for benchmark in BENCHMARKS:
        if benchmark.name == name:
            return benchmark
    known = ", ".join(benchmark.name for benchmark in BENCHMARKS)
    raise click.BadParameter(f"{name!r}: no such benchmark; there are: {known}", param_hint="NAME")


def _run(benchmark: Benchmark, context: Context) -> Report:
    try:
        figures = benchmark.run(context)
    except BenchError as error:
        raise click.ClickException(str(error)) from error
    return Report(
        benchmark=benchmark.name,
        description=benchmark.description,
        command=shlex.join(["gshare", *sys.argv[1:]]),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=this_machine(),
        figures=tuple(figures),
    )


def _write(report: Report, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{report.benchmark}.json").write_bytes(to_json(report))
    (folder / f"{report.benchmark}.md").write_text(to_markdown(report), encoding="utf-8")


def _say(line: str) -> None:
    click.echo(line, err=True)
