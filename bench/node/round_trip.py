"""How long a replica waits for a token that is free, on a machine whose cores are all taken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import msgspec
from gshare.config import ReplicaConfig

from bench.figures import BenchError, Bound, Context, Figure, Wish, figure, percentile
from bench.node.asker import Doors
from bench.node.place import Place
from bench.node.stage import Stage, stage
from bench.node.workers import ROOT, hold_to

CONNECTED = 50
ASKING = 7
ASKS = 2000
PAUSE_S = 0.002
"""Between rounds, as short work on a device would be."""
LIMIT_S = 120.0
P50 = Bound(Wish.AT_MOST, 100.0)
P99 = Bound(Wish.AT_MOST, 300.0)
SPIN = "while True: pass"
_WHAT = (
    f"from sending Acquire to having read Grant; {CONNECTED} replicas connected, one asks {ASKS} times, "
    f"{PAUSE_S * 1000:g} ms apart; each core kept busy by a process that asks nobody; all at the niceness of replicas, "
    "the scheduler at its own"
)


def measure(context: Context, place: Place) -> list[Figure]:
    """Raises: BenchError."""
    runs = []
    for number in range(context.runs):
        context.say(f"grant round trip, run {number + 1} of {context.runs}")
        with stage(cores=place.cores, weights_cache=place.weights_cache) as one, _busy(place.cores):
            runs.append(_asked(one))
    return [
        figure(
            f"grant round trip, p{percent}",
            [1e6 * percentile(run, percent) for run in runs],
            unit="µs",
            definition=f"p{percent} of the times {_WHAT}",
            bound=bound,
        )
        for percent, bound in ((50, P50), (99, P99))
    ]


def _asked(one: Stage) -> list[float]:
    members = [
        one.join(f"m{number}", units=(0,), request=1 / CONNECTED, limit=1.0).config for number in range(CONNECTED)
    ]
    doors = Doors(
        sockets=tuple(member.token_socket for member in members),
        credentials=tuple(member.credential for member in members),
        asking=ASKING,
        asks=ASKS,
        pause_s=PAUSE_S,
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
        raise BenchError(f"{ASKS} rounds took longer than {LIMIT_S:g} s") from error
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
