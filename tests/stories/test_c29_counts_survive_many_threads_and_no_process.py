"""C29 (prometheus/client_python 115, 127, 568): exact counts, and nothing left of a process that is gone.

A replica is one serving process, so that there is nothing to add up and no file to leave behind: its counters are
exact while it lives, and a successor begins at zero under a replica id of its own, as Prometheus expects of counters.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.replica_process import ReplicaProcess, replica

CLIENTS = 8
REQUESTS = 1000
PLAIN = "def handle(event, context): return event.body"
ANSWERED = 'gshare_requests_total{code="200",function_name="tested.openfaas-fn"}'
IN_FLIGHT = 'gshare_inflight{function_name="tested.openfaas-fn"}'


def scrape(it: ReplicaProcess) -> dict[str, float]:
    lines = it.call("/metrics").body.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def send(it: ReplicaProcess, count: int) -> None:
    connection = it.connect()
    for _ in range(count):
        assert connection.call("/", b"x").status == 200
    connection.close()


def files(folder: Path) -> Iterator[str]:
    return (str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if "__pycache__" not in path.parts)


def test_a_thousand_requests_from_many_threads_are_a_thousand() -> None:
    with replica(PLAIN) as it, ThreadPoolExecutor(CLIENTS) as pool:
        it.wait_ready()
        before = list(files(it.folder))
        for done in [pool.submit(send, it, REQUESTS // CLIENTS) for _ in range(CLIENTS)]:
            done.result()
        metrics = scrape(it)
        series = set(metrics)
        again = set(scrape(it))
        after = list(files(it.folder))

    assert metrics[ANSWERED] == REQUESTS
    assert metrics[IN_FLIGHT] == 0
    assert again == series, "a scrape does not grow by being scraped"
    assert after == before, "no file of anybody's counts"


def test_of_a_process_that_was_killed_nothing_is_counted_on() -> None:
    with replica(PLAIN) as first:
        first.wait_ready()
        send(first, 5)
        os.kill(first.status()["pid"], signal.SIGKILL)
        assert first.wait() == 1
        with pytest.raises(OSError):
            scrape(first)
        with replica(PLAIN) as second:
            second.wait_ready()
            send(second, 2)
            metrics = scrape(second)

    assert metrics[ANSWERED] == 2
