"""`python -m tests.fuzz`: bodies of every kind against replicas of all functions; prints a table, exits 1 if it is red.

`--show N` prints the N-th shot of a function instead, and what it is answered.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from tests.fuzz.shooting import GROWTH_BYTES, PEAK_BYTES, SETTINGS, Result, shoot
from tests.fuzz.shots import shot
from tests.replica_process import replica
from tests.tiny_functions import TINY_FUNCTIONS, TinyFunction

_NAMES = [function.name for function in TINY_FUNCTIONS]
_COMPLAINTS_SHOWN = 20
_WIDTH = 120


@click.command()
@click.option(
    "--function", "names", multiple=True, type=click.Choice(_NAMES), help="Only this; several times for more."
)
@click.option("--shots", type=click.IntRange(1), default=3500, show_default=True, help="For each function.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other shots.")
@click.option("--full", is_flag=True, help="The models in their real size.")
@click.option("--show", type=click.IntRange(0), help="Send only this shot, and print it with its answer.")
def main(*, names: Sequence[str], shots: int, seed: int, full: bool, show: int | None) -> None:
    chosen = [function for function in TINY_FUNCTIONS if not names or function.name in names]
    if show is not None:
        for function in chosen:
            _show(function, seed=seed, number=show, full=full)
        return
    results = []
    for function in chosen:
        print(f"{function.name}: {shots} shots", file=sys.stderr, flush=True)
        results.append(shoot(function, seed=seed, numbers=range(shots), env=_env(function, full=full)))
    console = Console(width=_WIDTH)
    console.print(_table(results))
    complaints = [f"{one.function}: {text}" for one in results for text in one.complaints]
    for text in complaints[:_COMPLAINTS_SHOWN]:
        console.print(text, markup=False)
    if len(complaints) > _COMPLAINTS_SHOWN:
        console.print(f"and {len(complaints) - _COMPLAINTS_SHOWN} more")
    sys.exit(bool(complaints))


def _env(function: TinyFunction, *, full: bool) -> dict[str, str]:
    env = function.env() | SETTINGS
    return {name: text for name, text in env.items() if not (full and name == "MODEL_CONFIG")}


def _table(results: Sequence[Result]) -> Table:
    table = Table(
        "function", "shots", "2xx", "4xx", "5xx", "none", "good", "process", "MiB before", "after", "peak", "s"
    )
    for one in results:
        by_class = [sum(n for (_, status), n in one.answers.items() if status // 100 == c) for c in (2, 4, 5, 0)]
        sizes = [f"{size / 2**20:.0f}" for size in (one.before_bytes, one.after_bytes, one.peak_bytes)]
        good = f"{one.good}/{one.good_asked}"
        process = "same" if one.same_process else "REPLACED"
        table.add_row(one.function, str(one.shots), *map(str, by_class), good, process, *sizes, f"{one.seconds:.0f}")
    table.caption = f"after - before: at most {GROWTH_BYTES >> 20} MiB; peak - before: at most {PEAK_BYTES >> 20} MiB"
    return table


def _show(function: TinyFunction, *, seed: int, number: int, full: bool) -> None:
    sent = shot(function, seed=seed, number=number)
    print(f"{sent.kind} to {sent.path} with {sent.headers}: {len(sent.body)} bytes: {sent.body[:500]!r}")
    with replica(function.folder, _env(function, full=full)) as process:
        process.wait_ready()
        answer = process.call(sent.path, sent.body, method="POST", headers=sent.headers)
        print(f"{answer.status}: {answer.body[:2000].decode(errors='replace')}")
        print(process.log)


if __name__ == "__main__":
    main()
