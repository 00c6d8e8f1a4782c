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
    """A wait for one function, by canonical name; gives up after LONGEST_WAIT_S. Raises: StoreUnavailable.

    There is none while some worker has no table yet: such a worker holds requests instead of answering 404.
    """

    def wait(name: str) -> None:
        deadline = time.monotonic() + LONGEST_WAIT_S
        while not _known(store, counters, name) and time.monotonic() < deadline:
            time.sleep(_POLL_S)

    return wait


def _known(store: Store, counters: Counters, name: str) -> bool:
    applied = counters.applied_version()
    table = store.routes() if applied else None
    return not applied or (table is not None and name in table.functions and applied >= table.version)
