"""`gshare bench node`: sharing a device in time and space, on a CPU device.

It starts token schedulers and processes of its own, as the node agent does, so nothing has to run; whatever else runs
on the machine disturbs it.
"""

from __future__ import annotations

import logging
import signal
import sys
from dataclasses import dataclass

from bench.figures import Context, Figure
from bench.node import cost, faults, quotas, round_trip, space
from bench.node.place import busy_before, find_place


@dataclass(frozen=True, slots=True)
class NodeBenchmark:
    """Everything that tokens and partitions promise, and what they cost."""

    name: str = "node"
    description: str = "shares, cost, grants, partitions and faults of a CPU device; standalone, wants a quiet machine"

    def run(self, context: Context) -> list[Figure]:
        """Raises: BenchError: fewer than two cores, or a process of the benchmark cannot run."""
        for noisy in ("gateway_plugin", "gshare"):  # schedulers are killed on purpose
            logging.getLogger(noisy).addHandler(logging.NullHandler())
        signal.signal(signal.SIGTERM, _end)
        place = find_place(context)
        quiet = busy_before(context)
        parts = (quotas, cost, round_trip, space, faults)
        return [quiet, *(made for part in parts for made in part.measure(context, place))]


def _end(*_: object) -> None:
    """Leave in good order, so that schedulers and workers end too."""
    sys.exit(128 + signal.SIGTERM)
