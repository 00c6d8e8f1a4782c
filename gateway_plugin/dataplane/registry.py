"""All functions of the routing table in force, by every name that a request may use."""

from __future__ import annotations

import logging
from collections import OrderedDict

from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.exchange import Exchange
from gateway_plugin.dataplane.functions import Function, Shared
from gateway_plugin.model import DEFAULT_NAMESPACE, RouteTable

_LOG = logging.getLogger(__name__)


class Registry:
    """The functions of one worker. Without a table nothing is unknown: requests wait until there is one."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._functions: dict[str, Function] = {}
        self._by_path: dict[bytes, Function] = {}
        self.unrouted = Unrouted(shared)
        self.version: int | None = None
        """Of the table in force; None: none yet."""

    def find(self, name: bytes) -> Function | None:
        """By the name in a path, with or without the default namespace."""
        return self._by_path.get(name)

    def apply(self, table: RouteTable) -> None:
        """Put a table in force, and serve who waited for it."""
        for name in sorted(self._functions.keys() - table.functions.keys()):
            self._functions.pop(name).remove()
        for name, routes in table.functions.items():
            if name not in self._functions:
                self._functions[name] = Function(name, self._shared)
            self._functions[name].apply(routes)
        self._by_path = {
            path.encode(): function for name, function in self._functions.items() for path in _path_names(name)
        }
        self.version = table.version
        self._shared.row.set_applied_version(table.version)
        self.unrouted.release()
        _LOG.info("routing table %d: %d functions", table.version, len(table.functions))

    def functions(self) -> list[Function]:
        return list(self._functions.values())

    def dispatch(self) -> None:
        """Look again for room: another worker's request may have made some."""
        for function in self._functions.values():
            if function.waiting:
                function.dispatch()

    def wake_again(self, name: str) -> None:
        """An earlier wake-up has run out; ask again if it is still needed."""
        function = self._functions.get(name)
        if function is not None:
            function.wake_if_asleep()


class Unrouted:
    """Where requests wait as long as there is no routing table at all."""

    hop = "a worker without routing table"

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._waiting: OrderedDict[Exchange, None] = OrderedDict()

    def submit(self, exchange: Exchange) -> None:
        if len(self._waiting) >= self._shared.queue_limit:
            exchange.refuse(refusals.queue_full(self.hop, self._shared.queue_limit))
            return
        self._waiting[exchange] = None
        exchange.queued = True
        self._shared.waiting.add(exchange)

    def withdraw(self, exchange: Exchange) -> None:
        self._waiting.pop(exchange, None)
        self._shared.waiting.discard(exchange)

    def overdue(self, exchange: Exchange) -> None:
        exchange.refuse(refusals.no_routes())

    def release(self) -> None:
        """There is a table now: everyone starts again, in order."""
        while self._waiting:
            exchange, _ = self._waiting.popitem(last=False)
            exchange.queued = False
            self._shared.waiting.discard(exchange)
            exchange.start()


def _path_names(name: str) -> tuple[str, ...]:
    bare = name.removesuffix(f".{DEFAULT_NAMESPACE}")
    return (name,) if bare == name else (name, bare)
