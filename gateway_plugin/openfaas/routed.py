"""The first call after an accepted deploy must not be a 404: wait until every data-plane worker knows the function."""

from __future__ import annotations

import time
from collections.abc import Callable

from gateway_plugin.counters import Counters
from gateway_plugin.store import Store

LONGEST_WAIT_S = 2.0
"""Without a loop or a worker nobody is told; the deploy is accepted all the same."""
_POLL_S = 0.01


def until_routed(store: Store, counters: Counters) -> Callable[[str], None]:
    """A wait for one function, by canonical name; gives up after LONGEST_WAIT_S. Raises: StoreUnavailable."""

    def wait(name: str) -> None:
        deadline = time.monotonic() + LONGEST_WAIT_S
        while not _known(store, counters, name) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    return wait


def _known(store: Store, counters: Counters, name: str) -> bool:
    table = store.routes()
    return table is not None and name in table.functions and counters.applied_version() >= table.version
