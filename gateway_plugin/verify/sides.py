"""Probes on units of their own, side by side: with tokens and without, in turn."""

from __future__ import annotations

from collections.abc import Sequence

from gateway_plugin.model import Device
from gateway_plugin.verify.figures import SideFigures
from gateway_plugin.verify.plan import Plan, Say
from gateway_plugin.verify.team import Stretch, Team, Wanted, known, lost_scheduler

ROUNDS = 4
"""How often they run with tokens; without before, between and after."""


def measure_sides(team: Team, plan: Plan, *, device: Device, say: Say) -> tuple[tuple[SideFigures, ...], float]:
    """Figures of two probes, each with half of a GPU or a core to itself, and what part others used meanwhile."""
    half = 1 if device.cores else device.units // 2
    halves = (tuple(range(half)), tuple(range(half, 2 * half)))
    say("two probes side by side, on units of their own")
    team.start([Wanted(name=f"probe on {_units_text(device, units)}", units=units, quota=1.0) for units in halves])
    first = team.ledger()
    free, gated = [], []
    for number in range(ROUNDS + 1):
        free.append(team.together(plan.alone_s, gated=False))
        if number < ROUNDS:
            gated.append(team.together(plan.alone_s))
    others = team.others(first, team.ledger())
    return tuple(_side(team, place, free=free, gated=gated) for place in range(len(halves))), others


def _side(team: Team, place: int, *, free: Sequence[Stretch], gated: Sequence[Stretch]) -> SideFigures:
    member = team.members[place]
    name = member.wanted.name
    return SideFigures(
        name=name,
        free_rates=known(tuple(team.pace(member, stretch.ran[place]) for stretch in free), name),
        gated_rates=tuple(team.pace(member, stretch.ran[place]) for stretch in gated),
        elsewhere=max(stretch.elsewhere for stretch in gated),
        lost_scheduler=lost_scheduler([stretch.ran[place] for stretch in gated]),
    )


def _units_text(device: Device, units: tuple[int, ...]) -> str:
    if device.cores:
        return f"core {','.join(str(device.cores[unit]) for unit in units)}"
    return f"units {units[0]}–{units[-1]}"
