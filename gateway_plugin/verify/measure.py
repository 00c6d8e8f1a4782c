"""What is run, in which order: each probe alone, all together, each alone again, so that a machine's drift cancels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gshare.turn import Gating

from gateway_plugin.agent_protocol import PROBE_FUNCTION
from gateway_plugin.errors import CannotVerify
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device
from gateway_plugin.probe_protocol import Ran
from gateway_plugin.verify.agent_link import AgentLink
from gateway_plugin.verify.figures import IDLE, Conditions, Finding, ProbeFigures, Report, SideFigures
from gateway_plugin.verify.judge import judge_shares, judge_side_by_side, overall
from gateway_plugin.verify.team import Stretch, Team, Wanted, sharing, used_between

ROUNDS = 4
"""How often each runs alone before all run together, and again after that."""
ALONE, LEAST_ALONE_S = 0.05, 0.15
"""Of the whole time: how long each runs alone at a time; and at least so long."""
SIDE_ROUNDS = 2
"""How often two run side by side with tokens; without before, between and after."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the user asked for."""

    device: str = ""
    """Empty: the first one."""
    shares: tuple[float, ...] = (0.3, 0.6)
    seconds: float = 10.0
    """That all probes run together."""
    ungated: frozenset[int] = frozenset()
    """Probes, counted from 1, that compute without asking for tokens."""
    disturb: bool = False
    """Measure even though others use the device."""
    pause_s: float = 0.0
    """Rest of each probe after each block."""

    @property
    def alone_s(self) -> float:
        return max(LEAST_ALONE_S, self.seconds * ALONE)


def verify(link: AgentLink, plan: Plan, say: Say) -> Report:
    """Measure and judge. Raises: PluginError: it cannot be measured as things are."""
    device = choose_device(link.devices(), plan.device)
    units = tuple(range(device.units)) if not device.cores else (0,)
    if not plan.disturb:
        require_idle(link.ledger(device.id), device, set(range(device.units)))
    with Team(link, device, pause_s=plan.pause_s) as team:
        conditions, probes = _measure_shares(team, plan, device=device, units=units, say=say)
    findings = judge_shares(probes, others=conditions.others)
    notes = []
    if device.units < 2:
        notes.append(f"{device.id} has one unit, so there is no second partition to run beside the first")
    elif conditions.degraded:
        notes.append(f"partitions are not checked, as they are not in force: {conditions.degraded}")
    else:
        with Team(link, device) as team:
            findings += _measure_sides(team, plan, device=device, say=say)
    verdict, summary = overall(findings)
    return Report(
        verdict=verdict,
        summary=summary,
        conditions=conditions,
        probes=probes,
        findings=findings,
        notes=tuple(notes),
    )


def choose_device(devices: Sequence[Device], wanted: str) -> Device:
    """Raises: CannotVerify: no such device, with those that there are."""
    found = next((device for device in devices if not wanted or device.id == wanted), None)
    if found is None:
        known = ", ".join(device.id for device in devices) or "none"
        raise CannotVerify(f"--device {wanted!r}: no such device here; there is {known}")
    return found


def require_idle(ledger: Ledger, device: Device, units: set[int]) -> None:
    """Raises: CannotVerify naming who uses these units and how much."""
    busy = [entry for entry in sharing(ledger, device, units) if entry.share >= IDLE or entry.waiting]
    if busy:
        who = ", ".join(
            f"{'another verify' if entry.function == PROBE_FUNCTION else entry.function} ({entry.replica}) "
            f"{entry.share:.0%}{' and waits for more' if entry.waiting else ''}"
            for entry in busy
        )
        raise CannotVerify(
            f"{device.id} is in use: in the last {ledger.span_s:.0f} s {who}; idle means under {IDLE:.0%} each. Wait, "
            "or measure all the same with --disturb: it takes time from them, and may not be able to judge"
        )


def _measure_shares(
    team: Team, plan: Plan, *, device: Device, units: tuple[int, ...], say: Say
) -> tuple[Conditions, tuple[ProbeFigures, ...]]:
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
        alone_rates=_known(alone_rates, member.wanted.name),
        together_rate=ran.completed / stretch.seconds,
        ledger_share=_ledger_share(member.admitted.id, stretch),
        by_second=ran.by_slice,
        wanted=ran.wanted_s / stretch.seconds,
        waited=ran.waited_s / stretch.seconds,
        edge=(quota * (1 - quota) * team.window_s + ran.longest_block_s) / stretch.seconds,
        elsewhere=stretch.elsewhere,
        lost_scheduler=_lost_scheduler([ran]) if member.wanted.gated else "",
    )


def _known(rates: tuple[float, ...], name: str) -> tuple[float, ...]:
    """Those with a block to go by. Raises: CannotVerify: there is none."""
    known = tuple(rate for rate in rates if rate > 0)
    if not known:
        raise CannotVerify(f"{name} got nothing done, even alone; something else keeps this machine busy: see `top`")
    return known


def _ledger_share(replica: str, stretch: Stretch) -> float:
    used_s = sum(used_between(entry, stretch.before) for entry in stretch.after.entries if entry.replica == replica)
    return used_s / (stretch.after.at_s - stretch.before.at_s)


def _lost_scheduler(ran: Sequence[Ran]) -> str:
    return next((one.reason for one in ran if one.gating != Gating.TOKENS), "")


def _measure_sides(team: Team, plan: Plan, *, device: Device, say: Say) -> tuple[Finding, ...]:
    """Two probes, each with half of a GPU or a core to itself: with tokens and without, in turn."""
    half = 1 if device.cores else device.units // 2
    halves = (tuple(range(half)), tuple(range(half, 2 * half)))
    say("two probes side by side, on units of their own")
    team.start([Wanted(name=f"probe on {_units_text(device, units)}", units=units, quota=1.0) for units in halves])
    first = team.ledger()
    free, gated = [], []
    for number in range(SIDE_ROUNDS + 1):
        free.append(team.together(2 * plan.alone_s, gated=False))
        if number < SIDE_ROUNDS:
            gated.append(team.together(2 * plan.alone_s))
    others = team.others(first, team.ledger())
    sides = [_side(team, place, free=free, gated=gated) for place in range(len(halves))]
    return judge_side_by_side(sides, others=others)


def _side(team: Team, place: int, *, free: Sequence[Stretch], gated: Sequence[Stretch]) -> SideFigures:
    member = team.members[place]
    name = member.wanted.name
    return SideFigures(
        name=name,
        free_rates=_known(tuple(team.rate(member, stretch.ran[place]) for stretch in free), name),
        gated_rates=tuple(team.rate(member, stretch.ran[place]) for stretch in gated),
        elsewhere=max(stretch.elsewhere for stretch in gated),
        lost_scheduler=_lost_scheduler([stretch.ran[place] for stretch in gated]),
    )


def _units_text(device: Device, units: tuple[int, ...]) -> str:
    if device.cores:
        return f"core {','.join(str(device.cores[unit]) for unit in units)}"
    return f"units {units[0]}–{units[-1]}"
