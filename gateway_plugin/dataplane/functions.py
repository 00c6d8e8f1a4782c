"""Functions as this worker knows them: their ready replicas, who waits for one, and who is sent where."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gateway_plugin.counters import Counters, WorkerRow
from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.choice import choose
from gateway_plugin.dataplane.deadlines import Deadlines
from gateway_plugin.dataplane.exchange import Exchange
from gateway_plugin.dataplane.pool import Endpoint, IdleConnections
from gateway_plugin.model import FunctionRoutes, Route

if TYPE_CHECKING:
    from gateway_plugin.dataplane.upstream import Upstream

AVOID_FIRST_S = 0.05
AVOID_MOST_S = 2.0


@dataclass(slots=True, kw_only=True)
class Shared:
    """What all functions of a worker use together."""

    loop: asyncio.AbstractEventLoop
    counters: Counters
    row: WorkerRow
    idle: IdleConnections
    queue_limit: int
    queue_timeout_s: float
    wake: Callable[[str], None]
    """Ask the loop for a first replica of a function; called again it does nothing while that is under way."""
    waiting: Deadlines[Exchange]
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class Replica:
    """One replica that may be sent requests."""

    __slots__ = ("column", "endpoint", "failures", "hop", "limit", "route", "turn")

    def __init__(self, route: Route, *, function: str, shared: Shared) -> None:
        self.route = route
        self.endpoint = Endpoint(route.endpoint, loop=shared.loop, idle=shared.idle)
        self.column = shared.counters.column(route.slot)
        self.hop = f"replica {route.replica} of function {function}"
        self.limit = route.max_inflight
        """0 while it is avoided."""
        self.turn = 0
        """Number of the function's choice that picked it last."""
        self.failures = 0


class ReplicaLease:
    """A request's place at a replica: +1 in the shared counters until it is released."""

    __slots__ = ("_function", "_held", "_slot", "hop")

    def __init__(self, function: Function, replica: Replica) -> None:
        self.hop = replica.hop
        self._function = function
        self._slot = replica.route.slot
        self._held = True
        function.shared.row.add(self._slot, 1)

    def release(self) -> None:
        if self._held:
            self._held = False
            self._function.shared.row.add(self._slot, -1)
            self._function.dispatch()


class Function:
    """One function: the destination of its requests."""

    def __init__(self, name: str, shared: Shared) -> None:
        self.name = name
        self.hop = f"the queue of function {name}"
        self.shared = shared
        self.arrived = 0
        """Requests since the last flush of the demand."""
        self.waiting: OrderedDict[Exchange, None] = OrderedDict()
        self.wanted = 0
        self._replicas: list[Replica] = []
        self._turn = 0

    # Routes

    def apply(self, routes: FunctionRoutes) -> None:
        """Put new routes in force; replicas that stay keep their connections and their turn."""
        self.wanted = routes.wanted
        known = {replica.route: replica for replica in self._replicas}
        self._replicas = [known.get(route) or self._new_replica(route) for route in routes.replicas]
        for route in known.keys() - set(routes.replicas):
            known[route].endpoint.retire()
        self.dispatch()
        self.wake_if_asleep()

    def _new_replica(self, route: Route) -> Replica:
        return Replica(route, function=self.name, shared=self.shared)

    def remove(self) -> None:
        """The function is gone: nobody can be served any more."""
        self.apply(FunctionRoutes(wanted=1))
        for exchange in list(self.waiting):
            exchange.refuse(refusals.unknown_function(self.name))

    def wake_if_asleep(self) -> None:
        """Somebody waits and no replica is wanted: say so."""
        if self.waiting and self.wanted == 0:
            self.shared.wake(self.name)

    # Requests

    def submit(self, exchange: Exchange) -> None:
        if not self.waiting:
            index = self._choose()
            if index is not None:
                self._assign(exchange, index)
                return
        if len(self.waiting) >= self.shared.queue_limit:
            exchange.refuse(refusals.queue_full(f"function {self.name}", self.shared.queue_limit))
            return
        self.waiting[exchange] = None
        self._start_clock(exchange)
        self.wake_if_asleep()

    def withdraw(self, exchange: Exchange) -> None:
        self.waiting.pop(exchange, None)
        self.shared.waiting.discard(exchange)

    def _start_clock(self, exchange: Exchange) -> None:
        if not exchange.queued:
            exchange.queued = True
            self.shared.waiting.add(exchange)

    def dispatch(self) -> None:
        """Send off who waits, in order, as long as there is room."""
        while self.waiting:
            index = self._choose()
            if index is None:
                return
            exchange, _ = self.waiting.popitem(last=False)
            self._assign(exchange, index)

    def overdue(self, exchange: Exchange) -> None:
        """It has waited for the whole of the queue timeout."""
        limit_s = self.shared.queue_timeout_s
        exchange.refuse(refusals.queue_timeout(self.name, limit_s=limit_s, ready=len(self._replicas)))

    def _choose(self) -> int | None:
        return choose([(sum(replica.column), replica.limit, replica.turn) for replica in self._replicas])

    def _assign(self, exchange: Exchange, index: int) -> None:
        replica = self._replicas[index]
        self._turn += 1
        replica.turn = self._turn
        exchange.lease = ReplicaLease(self, replica)
        upstream = replica.endpoint.take_idle()
        if upstream is not None:
            self._bind(exchange, replica, upstream)
            return
        task = self.shared.loop.create_task(self._connect(exchange, replica))
        self.shared.tasks.add(task)
        task.add_done_callback(self.shared.tasks.discard)

    def _bind(self, exchange: Exchange, replica: Replica, upstream: Upstream) -> None:
        replica.failures = 0
        if exchange.queued:
            exchange.queued = False
            self.shared.waiting.discard(exchange)
        exchange.bind(upstream)

    async def _connect(self, exchange: Exchange, replica: Replica) -> None:
        try:
            upstream = await replica.endpoint.connect()
        except OSError:
            self._avoid(replica)
            if not exchange.over:
                self._requeue(exchange)
            return
        if exchange.over:
            replica.endpoint.keep(upstream)
        else:
            self._bind(exchange, replica, upstream)

    def _requeue(self, exchange: Exchange) -> None:
        """Nothing was sent, so nothing is lost: it goes first again, with the time it has waited counted on."""
        lease, exchange.lease = exchange.lease, None
        self.waiting[exchange] = None
        self.waiting.move_to_end(exchange, last=False)
        self._start_clock(exchange)
        if lease is not None:
            lease.release()
        self.dispatch()

    # Replicas out of reach

    def _avoid(self, replica: Replica) -> None:
        """Send it nothing for a moment that grows with each failure in a row."""
        if replica.limit == 0:
            return  # several requests met the same failure
        replica.limit = 0
        replica.failures += 1
        delay_s = min(AVOID_MOST_S, AVOID_FIRST_S * 2 ** (replica.failures - 1))
        self.shared.loop.call_later(delay_s, self._try_again, replica)

    def _try_again(self, replica: Replica) -> None:
        replica.limit = replica.route.max_inflight
        self.dispatch()
