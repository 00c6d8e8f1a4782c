"""When a new function is known to the data plane."""

from __future__ import annotations

import threading
from pathlib import Path

from gateway_plugin.counters import Counters
from gateway_plugin.model import FunctionRoutes, RouteTable
from gateway_plugin.openfaas.routed import until_routed
from gateway_plugin.store import Store

NAME = "f.openfaas-fn"


def test_it_is_known_once_every_worker_has_applied_a_table_that_has_it(redis_url: str, tmp_path: Path) -> None:
    store, counters = Store(redis_url), Counters(tmp_path / "counters", workers=2)
    done = threading.Event()
    for worker in (0, 1):
        counters.worker(worker).set_applied_version(6)

    def wait() -> None:
        until_routed(store, counters)(NAME)
        done.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    store.publish_routes(RouteTable(7, {NAME: FunctionRoutes()}))
    counters.worker(0).set_applied_version(7)
    assert not done.wait(0.05), "the second worker still has an older table"
    counters.worker(1).set_applied_version(7)
    waiting.join()
    assert done.is_set()


def test_without_a_loop_the_wait_ends(redis_url: str, tmp_path: Path) -> None:
    counters = Counters(tmp_path / "counters", workers=1)
    counters.worker(0).set_applied_version(7)
    until_routed(Store(redis_url), counters)(NAME)


def test_workers_that_hold_requests_anyway_are_not_waited_for(redis_url: str, tmp_path: Path) -> None:
    store = Store(redis_url)
    until_routed(store, Counters(tmp_path / "counters", workers=1))(NAME)
    assert store.routes() is None
