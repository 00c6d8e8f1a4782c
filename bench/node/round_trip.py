"""How long a replica waits for a token that is free, on a machine whose cores are all taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import msgspec
from gshare.config import ReplicaConfig

from bench.figures import BenchError, Bound, Context, Figure, Wish, figure, percentile
from bench.node.asker import Doors
from bench.node.place import Place
from bench.node.stage import Stage, stage
from bench.node.workers import ROOT, hold_to

CONNECTED = 50
ASKING = 7
LIMIT_S = 120.0
P50 = Bound(Wish.AT_MOST, 100.0)
P99 = Bound(Wish.AT_MOST, 300.0)
SPIN = "while True: pass"


@dataclass(frozen=True, slots=True)
class Pace:
    """How often the one asks."""

    title: str
    asks: int
    in_a_row: int
    pause_s: float
    """Before each row."""
    bounded: bool

    @property
    def definition(self) -> str:
        often = f"{self.in_a_row} in a row" if self.in_a_row > 1 else "one by one"
        return (
            f"from sending Acquire to having read Grant, {often}, {self.pause_s * 1000:g} ms between; {CONNECTED} "
            "replicas connected, one asks; each core kept busy by a process that asks nobody; all at the niceness of "
            "replicas, the scheduler at its own"
        )


PACES = (
    Pace("grant round trip", asks=5000, in_a_row=50, pause_s=0.01, bounded=True),
    Pace("grant round trip, now and then", asks=1000, in_a_row=1, pause_s=0.002, bounded=False),
)
"""Now and then the other processes have had the caches for themselves meanwhile, as between passes of a model."""


def measure(context: Context, place: Place) -> list[Figure]:
    """Raises: BenchError."""
    runs: dict[str, list[list[float]]] = {pace.title: [] for pace in PACES}
    for number in range(context.runs):
        context.say(f"grant round trip, run {number + 1} of {context.runs}")
        for pace in PACES:
            with stage(cores=place.cores, weights_cache=place.weights_cache) as one, _busy(place.cores):
                runs[pace.title].append(_asked(one, pace))
    return [made for pace in PACES for made in _figures(pace, runs[pace.title])]


def _figures(pace: Pace, runs: list[list[float]]) -> list[Figure]:
    return [
        figure(
            f"{pace.title}, p{percent}",
            [1e6 * percentile(run, percent) for run in runs],
            unit="µs",
            definition=f"p{percent} of the times {pace.definition}",
            bound=bound if pace.bounded else None,
        )
        for percent, bound in ((50, P50), (99, P99))
    ]


def _asked(one: Stage, pace: Pace) -> list[float]:
    members = [
        one.join(f"m{number}", units=(0,), request=1 / CONNECTED, limit=1.0).config for number in range(CONNECTED)
    ]
    doors = Doors(
        sockets=tuple(member.token_socket for member in members),
        credentials=tuple(member.credential for member in members),
        asking=ASKING,
        asks=pace.asks,
        in_a_row=pace.in_a_row,
        pause_s=pace.pause_s,
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.node.asker"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    hold_to(process.pid, members[ASKING])
    try:
        answer, _ = process.communicate(msgspec.json.encode(doors), timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        raise BenchError(f"{pace.asks} rounds took longer than {LIMIT_S:g} s") from error
    if process.returncode:
        raise BenchError(f"the asking process ended with code {process.returncode}")
    return msgspec.json.decode(answer, type=list[float])


@contextmanager
def _busy(cores: tuple[int, ...]) -> Iterator[None]:
    """A process on each core that never sleeps."""
    with ExitStack() as stack:
        for core in cores:
            process = subprocess.Popen([sys.executable, "-c", SPIN], start_new_session=True)
            stack.callback(process.wait)
            stack.callback(process.kill)
            hold_to(process.pid, ReplicaConfig(cpus=str(core)))
        yield
