"""What all connections of one worker share: where requests go, the clocks that watch them, how they ended."""

from __future__ import annotations

import asyncio
from collections import Counter
from importlib.metadata import version
from typing import TYPE_CHECKING

from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.deadlines import Deadlines
from gateway_plugin.dataplane.destination import Destination
from gateway_plugin.dataplane.exchange import Exchange
from gateway_plugin.dataplane.refusals import Refusal
from gateway_plugin.dataplane.targets import origin_form, split_function
from gateway_plugin.model import ROUTE_NAME

if TYPE_CHECKING:
    from gateway_plugin.dataplane.client import ClientConnection
    from gateway_plugin.dataplane.control import Control
    from gateway_plugin.dataplane.registry import Registry
    from gateway_plugin.settings import Settings

HEAD_TIMEOUT_S = 30.0
"""A request's head has to be complete within this time of its first byte, or of the connect."""
CLIENT_IDLE_S = 180.0
"""A connection on which no request is under way is closed after this time."""
STALL_S = 60.0
"""A client that takes nothing of its answer for this time is cut off, since it holds a place at a replica."""
LINGER_S = 2.0
"""After an early refusal: the time a client has to read it while it may still be sending its body."""
_HEALTH = b"/healthz"


class Plane:
    """One worker's shared state. Everything runs in one event loop, so nothing is locked."""

    def __init__(
        self,
        settings: Settings,
        *,
        loop: asyncio.AbstractEventLoop,
        registry: Registry,
        control: Control,
        head_timeout_s: float = HEAD_TIMEOUT_S,
    ) -> None:
        self.settings = settings
        self.registry = registry
        self.control = control
        self.head_timeout_s = head_timeout_s
        self.clients: set[ClientConnection] = set()
        self._last_gone = asyncio.Event()
        self.draining = False
        self.outcomes: Counter[str] = Counter()
        """How exchanges ended: `completed`, `client_cancelled`, `upstream_lost`, …"""
        self.served_by = b"X-Served-By: fast-gshare/%b\r\n" % version("fast-gshare").encode()
        self.answer_deadlines: Deadlines[Exchange] = Deadlines(
            loop, settings.upstream_timeout_s, Exchange.answer_overdue
        )
        self.head_deadlines: Deadlines[ClientConnection] = Deadlines(loop, head_timeout_s, lambda c: c.head_overdue())
        self.idle_deadlines: Deadlines[ClientConnection] = Deadlines(loop, CLIENT_IDLE_S, lambda c: c.drain())
        self.stall_deadlines: Deadlines[ClientConnection] = Deadlines(loop, STALL_S, lambda c: c.cut())
        self.linger_deadlines: Deadlines[ClientConnection] = Deadlines(loop, LINGER_S, lambda c: c.cut())

    def client_gone(self, client: ClientConnection) -> None:
        """A client's connection is closed."""
        self.clients.discard(client)
        for deadlines in (self.head_deadlines, self.idle_deadlines, self.stall_deadlines, self.linger_deadlines):
            deadlines.discard(client)
        if not self.clients:
            self._last_gone.set()

    async def all_gone(self) -> None:
        """Wait until no client is connected."""
        while self.clients:
            self._last_gone.clear()
            await self._last_gone.wait()

    def destination(self, exchange: Exchange) -> Destination:
        """Where a request goes. For an invocation the exchange is told the target that the function sees."""
        target = exchange.head.target
        if target[:1] != b"/":
            target = exchange.target = origin_form(target)
        split = split_function(target)
        if split is None:
            if self.registry.version is None and target.partition(b"?")[0] == _HEALTH:
                return Refuse(refusals.no_routes())
            return self.control
        name, exchange.target = split
        exchange.invocation = True
        function = self.registry.find(name)
        if function is not None:
            function.arrived += 1
            return function
        if self.registry.version is None and ROUTE_NAME.fullmatch(name.decode("latin-1")):
            return self.registry.unrouted
        return Refuse(refusals.unknown_function(name.decode("latin-1")))


class Refuse:
    """The destination of requests that are answered here."""

    hop = "the data plane"

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal

    def submit(self, exchange: Exchange) -> None:
        exchange.refuse(self._refusal)

    def overdue(self, exchange: Exchange) -> None:
        """It never waits."""

    def withdraw(self, exchange: Exchange) -> None:
        """It never waits."""
