"""A device with clients on a virtual clock: they behave as replicas do, and what they were given is recorded.

A client asks when it has work, runs blocks that cannot be interrupted, stops at the first block's end after its slice
or a recall, gives the token back, and asks again while it has work. Between events nothing happens.
"""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from gateway_plugin.node.tokens.rule import Admission, Decision, Grant, TokenRule, TokenShare


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a client does, seen from outside."""

    share: TokenShare
    shortest_block_s: float
    longest_block_s: float
    burst_blocks: int = 0
    """Blocks of work that come at once; 0: there is always work."""
    think_s: float = 0.0
    """Mean of the pause between a burst's end and the next; exponential."""
    joins_s: float = 0.0
    leaves_s: float = math.inf
    hangs_s: float = math.inf
    """From the first token after this time on it never gives one back, and then asks for no other."""
    account: str = ""


@dataclass(slots=True)
class SimulatedClient:
    """One client and its record."""

    name: str
    does: Behaviour
    rng: random.Random
    runs: list[tuple[float, float]] = field(default_factory=list)
    waits: list[tuple[float, float]] = field(default_factory=list)
    """From asking to the token."""
    demands: list[tuple[float, float]] = field(default_factory=list)
    """From having work to having none."""
    asked_s: float = math.inf
    busy_since_s: float = math.inf
    started_s: float = math.inf
    block_end_s: float = 0.0
    ends: list[float] = field(default_factory=list)
    """Ends of this run's blocks, as far as they were drawn."""
    blocks_left: float = 0
    turn: int = 0
    """Counts changes of what it will do next, so that outdated events are known."""
    gone: bool = False

    def end_of_run(self, stop_s: float) -> float:
        """The first end of a block from `stop_s` on, or of the last block of its work."""
        while (not self.ends or self.ends[-1] < stop_s) and len(self.ends) < self.blocks_left:
            last_s = self.ends[-1] if self.ends else self.started_s
            self.ends.append(last_s + self.rng.uniform(self.does.shortest_block_s, self.does.longest_block_s))
        return next(end_s for end_s in self.ends if end_s >= stop_s or end_s == self.ends[-1])

    @property
    def hangs(self) -> bool:
        return self.started_s >= self.does.hangs_s


class Simulation:
    """Runs clients against a rule; `check` is called after each decision."""

    def __init__(self, *, units: int, admission: Admission, window_s: float, seed: int = 0) -> None:
        self.rule = TokenRule(units=units, admission=admission, window_s=window_s)
        self.units, self.admission, self.window_s = units, admission, window_s
        self.now_s = 0.0
        self.clients: dict[str, SimulatedClient] = {}
        self.lost: list[tuple[str, float]] = []
        self.live: dict[str, int] = {}
        """Who holds a token, and the units as bits."""
        self._rng = random.Random(seed)
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()
        self._wake_s = math.inf
        self.decisions = 0

    def add(self, name: str, does: Behaviour) -> SimulatedClient:
        client = SimulatedClient(name, does, random.Random(self._rng.random()))
        self.clients[name] = client
        self.at(does.joins_s, lambda: self._join(client))
        if does.leaves_s < math.inf:
            self.at(does.leaves_s, lambda: self._leave(client))
        return client

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """Do something then."""
        heapq.heappush(self._events, (when_s, next(self._number), action))

    def run(self, until_s: float) -> None:
        """Go on until then; runs that are under way are recorded up to then."""
        while (next_s := min(self._events[0][0] if self._events else math.inf, self._wake_s)) <= until_s:
            self.now_s = next_s
            while self._events and self._events[0][0] <= next_s:
                heapq.heappop(self._events)[2]()
            self._apply(self.rule.decide(next_s))
        self.now_s = until_s
        for client in self.clients.values():
            self._close(client)

    def _close(self, client: SimulatedClient) -> None:
        if client.name in self.live:
            client.runs.append((client.started_s, self.now_s))
        if client.busy_since_s < self.now_s:
            client.demands.append((client.busy_since_s, self.now_s))

    def _apply(self, decision: Decision) -> None:
        self.decisions += 1
        self._wake_s = decision.wake_at_s
        assert self._wake_s > self.now_s, "the rule would be called without end"
        for name in decision.lost:
            client = self.clients[name]
            assert client.hangs, f"{name} lost a token though it returns them"
            self._stopped(client)
            self.lost.append((name, self.now_s))
        for name in decision.recalls:
            assert name in self.live
            self._recall(self.clients[name])
        for grant in decision.grants:
            self._start(self.clients[grant.client], grant)

    def _join(self, client: SimulatedClient) -> None:
        self.rule.join(client.name, client.does.share, self.now_s, account=client.does.account)
        self._work(client)

    def _leave(self, client: SimulatedClient) -> None:
        if client.name in self.live:
            self._stopped(client)
        client.gone = True
        client.turn += 1
        self._idle(client)
        self.rule.leave(client.name, self.now_s)

    def _work(self, client: SimulatedClient) -> None:
        if client.gone:
            return
        client.blocks_left = client.does.burst_blocks or math.inf
        client.busy_since_s = self.now_s
        self._ask(client)

    def _ask(self, client: SimulatedClient) -> None:
        client.asked_s = self.now_s
        self.rule.ask(client.name, self.now_s, longest_block_s=client.does.longest_block_s)

    def _start(self, client: SimulatedClient, grant: Grant) -> None:
        rows = sum(1 << unit for unit in client.does.share.units)
        self._check_room(client.name, rows)
        self.live[client.name] = rows
        client.waits.append((client.asked_s, self.now_s))
        client.started_s = self.now_s
        client.ends = []
        self._stop_at(client, self.now_s + grant.slice_s)

    def _recall(self, client: SimulatedClient) -> None:
        self._stop_at(client, self.now_s)

    def _stop_at(self, client: SimulatedClient, stop_s: float) -> None:
        client.turn += 1
        turn = client.turn
        if client.hangs or (stop_s == math.inf and client.blocks_left == math.inf):
            return
        if client.ends and client.ends[-1] < stop_s and len(client.ends) >= client.blocks_left:
            stop_s = client.ends[-1]
        self.at(client.end_of_run(stop_s), lambda: self._return(client, turn))

    def _return(self, client: SimulatedClient, turn: int) -> None:
        if client.turn != turn:
            return
        self.rule.give_back(client.name, self.now_s, used_s=self.now_s - client.started_s)
        done = sum(1 for end_s in client.ends if end_s <= self.now_s)
        client.blocks_left -= done
        self._stopped(client)
        if client.blocks_left > 0:
            self._ask(client)
        else:
            self._idle(client)
            pause_s = client.rng.expovariate(1 / client.does.think_s) if client.does.think_s else 0.0
            self.at(self.now_s + pause_s, lambda: self._work(client))

    def _stopped(self, client: SimulatedClient) -> None:
        del self.live[client.name]
        client.runs.append((client.started_s, self.now_s))
        if client.hangs:
            client.turn += 1
            self._idle(client)

    def _idle(self, client: SimulatedClient) -> None:
        if client.busy_since_s < self.now_s:
            client.demands.append((client.busy_since_s, self.now_s))
        client.busy_since_s = math.inf

    def _check_room(self, name: str, rows: int) -> None:
        assert name not in self.live, f"{name} has two tokens"
        width = rows.bit_count() + sum(other.bit_count() for other in self.live.values())
        assert width <= self.units, f"{width} of {self.units} units are out"
        if self.admission is Admission.EXCLUSIVE:
            assert not any(other & rows for other in self.live.values()), "a unit is under two tokens"
