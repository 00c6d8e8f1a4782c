"""Random sets of clients, run on a virtual clock, and what came of them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gateway_plugin.node.tokens.rule import Admission
from tests.unit.node.tokens.figures import Use
from tests.unit.node.tokens.rectangles import cut, share
from tests.unit.node.tokens.simulation import Behaviour, SimulatedClient, Simulation

W = 0.2
LONG = 50 * W
"""Over how long a request is judged."""
SCALE = int(os.environ.get("GSHARE_TOKEN_SETS", "1"))
"""How many times as many sets as usual."""
ROUNDING = 1e-6

Dresser = Callable[[random.Random, Behaviour], Behaviour]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A set that has run."""

    seed: int
    simulation: Simulation

    @property
    def clients(self) -> list[SimulatedClient]:
        return list(self.simulation.clients.values())

    def served(self, client: SimulatedClient) -> float:
        """The least that it used in any 50 windows, as a fraction of its request."""
        least = Use(client.runs).least(LONG, from_s=0, to_s=self.simulation.now_s)
        return least / (client.does.share.request * LONG)

    def worst(self) -> float:
        """That of the client that fared worst."""
        return min(self.served(client) for client in self.clients)

    def check_limits(self) -> None:
        """No window above the limit and one block; in the long run not above it either: what was over is repaid."""
        for client in self.clients:
            use, limit, block_s = Use(client.runs), client.does.share.limit, client.does.longest_block_s
            end_s = self.simulation.now_s
            most = use.most(W, from_s=0, to_s=end_s)
            assert most <= min(limit * W + block_s, W) + ROUNDING, f"seed {self.seed}, {client.name}: {most / W} of W"
            most = use.most(LONG, from_s=0, to_s=end_s)
            assert most <= limit * (LONG + 2 * W) + block_s + ROUNDING, f"seed {self.seed}, {client.name}: {most}"

    def check_waits(self) -> None:
        """Nobody waits longer than 2 W, its block ÷ its request, the others' blocks and the grace together."""
        blocks_s = sum(client.does.longest_block_s for client in self.clients)
        for client in self.clients:
            block_s = client.does.longest_block_s
            bound_s = 2.5 * W + block_s / client.does.share.request + blocks_s - block_s
            longest_s = max((to_s - from_s for from_s, to_s in self.waits(client)), default=0.0)
            assert longest_s <= bound_s, (
                f"seed {self.seed}, {client.name} waited {longest_s / W} W, bound {bound_s / W} W"
            )

    def waits(self, client: SimulatedClient) -> Iterator[tuple[float, float]]:
        """From asking to the token, the one that has not ended included."""
        yield from client.waits
        if client.name not in self.simulation.live and client.busy_since_s < self.simulation.now_s:
            yield client.asked_s, self.simulation.now_s


def run_set(
    seed: int, *, windows: int = 52, filled: float = 1.0, units: int = 0, dress: Dresser | None = None
) -> Outcome:
    """A set that placement could have made, filling so much of the device; all always have work unless dressed."""
    rng = random.Random(seed)
    units = units or rng.randint(1, 8)
    admission = rng.choice(list(Admission))
    simulation = Simulation(units=units, admission=admission, window_s=W, seed=seed)
    for number, one in enumerate(cut(rng, units=units, pieces=rng.randint(2, 7), narrowest=50)):
        longest_s = rng.uniform(0.01, 0.1) * W
        shortest_s = longest_s * rng.choice((1.0, 0.2))
        behaviour = Behaviour(share(rng, one, shrink=filled), shortest_s, longest_s)
        simulation.add(f"c{number}", dress(rng, behaviour) if dress else behaviour)
    simulation.run(windows * W)
    return Outcome(seed, simulation)
