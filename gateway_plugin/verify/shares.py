"""Probes that share units: each alone, all together, each alone again, so that a machine's drift cancels."""

from __future__ import annotations

from gateway_plugin.model import Device
from gateway_plugin.verify.figures import Conditions, ProbeFigures
from gateway_plugin.verify.plan import Plan, Say
from gateway_plugin.verify.team import Stretch, Team, Wanted, known, lost_scheduler, used_between

ROUNDS = 3
"""How often each runs alone before all run together, and again after that."""


def measure_shares(team: Team, plan: Plan, *, device: Device, say: Say) -> tuple[Conditions, tuple[ProbeFigures, ...]]:
    """The figures of each probe; on a CPU all share the first core, on a GPU all of it."""
    units = (0,) if device.cores else tuple(range(device.units))
    wanted = [
        Wanted(name=f"probe {number}", units=units, quota=share, gated=number not in plan.ungated)
        for number, share in enumerate(plan.shares, start=1)
    ]
    say(f"starting {len(wanted)} probes on {device.id}")
    team.start(wanted)
    first = team.ledger()
    say("each alone, without tokens")
    before = _alone(team, plan)
    say(f"all together, for {plan.seconds:g} s")
    stretch = team.together(plan.seconds)
    say("each alone again")
    alone = [one + other for one, other in zip(before, _alone(team, plan), strict=True)]
    others = team.others(first, team.ledger())
    conditions = Conditions(
        device=device.id,
        kind=device.kind,
        units=device.units,
        window_s=team.window_s,
        block_s=team.block_s,
        seconds=plan.seconds,
        others=others,
        elsewhere=stretch.elsewhere,
        degraded=team.degraded,
    )
    return conditions, tuple(
        _figures(team, place, alone_rates=rates, stretch=stretch) for place, rates in enumerate(alone)
    )


def _alone(team: Team, plan: Plan) -> list[tuple[float, ...]]:
    """Rates of each probe, taken in turns."""
    turns = [[team.alone(member, plan.alone_s) for member in team.members] for _ in range(ROUNDS)]
    return list(zip(*turns, strict=True))


def _figures(team: Team, place: int, *, alone_rates: tuple[float, ...], stretch: Stretch) -> ProbeFigures:
    member, ran = team.members[place], stretch.ran[place]
    quota = member.wanted.quota
    return ProbeFigures(
        name=member.wanted.name,
        asked=quota,
        gated=member.wanted.gated,
        alone_rates=known(alone_rates, member.wanted.name),
        together_rate=ran.completed / stretch.seconds,
        core_rate=team.core_rate(member, ran),
        ledger_share=_ledger_share(member.admitted.id, stretch),
        by_second=ran.by_slice,
        wanted=ran.wanted_s / stretch.seconds,
        waited=ran.waited_s / stretch.seconds,
        edge=(quota * (1 - quota) * team.window_s + ran.longest_block_s) / stretch.seconds,
        elsewhere=stretch.elsewhere,
        lost_scheduler=lost_scheduler([ran]) if member.wanted.gated else "",
    )


def _ledger_share(replica: str, stretch: Stretch) -> float:
    used_s = sum(used_between(entry, stretch.before) for entry in stretch.after.entries if entry.replica == replica)
    return used_s / (stretch.after.at_s - stretch.before.at_s)
