"""Whether shares are kept by replicas that want all they can get, and how soon a new quota holds."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.figures import Bound, Context, Figure, Wish, figure
from bench.node.place import Place
from bench.node.probes import SLICE_S, Counted, Probes
from bench.node.stage import Member, Stage, device_s, stage

RUN_S = 10.0
MOST_RUNS = 3
SMALL, LARGE = 0.3, 0.6
BEFORE = 0.2
"""The larger one's quota before it is raised while it runs."""
BEFORE_S, AFTER_S = 3.0, 5.0
STEADY_S = 2.0
"""From the change on, until when the new rate must have been reached."""
SPAN_S, PART = 0.5, 0.95
SHARE = Bound(Wish.AT_MOST, 2.0)
RATIO = Bound(Wish.AT_MOST, 5.0)
SETTLED = Bound(Wish.AT_MOST, STEADY_S)
_HOW = f"two saturating probes on one core, quotas {SMALL} and {LARGE} (request = limit), blocks of 10 ms, {RUN_S:g} s"


@dataclass(frozen=True, slots=True)
class Shares:
    """One run of both probes."""

    small: float
    large: float
    """Of the time, by the ledger."""
    ratio: float
    """Blocks of the larger ÷ blocks of the smaller."""


def measure(context: Context, place: Place) -> list[Figure]:
    """Raises: BenchError, ProbeFailed."""
    runs = min(context.runs, MOST_RUNS)
    context.say("shares: starting two probes")
    with stage(cores=place.cores[:1], weights_cache=place.weights_cache) as one:
        members = [
            one.join(name, units=(0,), request=quota, limit=quota)
            for name, quota in (("small", SMALL), ("large", LARGE))
        ]
        with Probes(members) as probes:
            shares = []
            changes = []
            for number in range(runs):
                context.say(f"shares, run {number + 1} of {runs}")
                shares.append(_shares(one, members, probes))
                changes.append(_changed_s(one, members[1], probes))
    return [*_share_figures(shares), _change_figure(changes)]


def _shares(one: Stage, members: list[Member], probes: Probes) -> Shares:
    probes.begin(RUN_S)
    before = [device_s(one.entry(member)) for member in members]
    from_s = time.monotonic()
    counted = probes.ran()
    passed_s = time.monotonic() - from_s
    used = [(device_s(one.entry(member)) - so_far) / passed_s for member, so_far in zip(members, before, strict=True)]
    return Shares(used[0], used[1], ratio=counted[1].blocks / counted[0].blocks)


def _share_figures(runs: list[Shares]) -> list[Figure]:
    off = [100 * max(abs(run.small - SMALL), abs(run.large - LARGE)) for run in runs]
    made = [
        *(
            figure(f"share of {quota}", values, unit="", definition=f"device time ÷ time, by the ledger; {_HOW}")
            for quota, values in ((SMALL, [run.small for run in runs]), (LARGE, [run.large for run in runs]))
        ),
        figure("shares off", off, unit="points", definition=f"the larger |share - quota|; {_HOW}", bound=SHARE),
        figure("blocks, ratio", [run.ratio for run in runs], unit="×", definition=f"larger ÷ smaller; {_HOW}"),
    ]
    wanted = LARGE / SMALL
    return [
        *made,
        figure(
            "blocks, ratio off",
            [100 * abs(run.ratio / wanted - 1) for run in runs],
            unit="%",
            definition=f"|ratio ÷ {wanted:g} - 1|; {_HOW}",
            bound=RATIO,
        ),
    ]


def _changed_s(one: Stage, member: Member, probes: Probes) -> float:
    """Seconds from a new quota to the first half second at the new rate."""
    one.resize(member, request=BEFORE, limit=BEFORE)
    start_s = probes.begin(BEFORE_S + AFTER_S)
    time.sleep(max(0.0, start_s + BEFORE_S - time.monotonic()))
    one.resize(member, request=LARGE, limit=LARGE)
    changed_s = time.monotonic() - start_s
    return settled_s(probes.ran()[1], changed_s=changed_s, until_s=BEFORE_S + AFTER_S)


def settled_s(counted: Counted, *, changed_s: float, until_s: float) -> float:
    """From a change (seconds after the run's start) to the first span at the rate that holds in the end."""
    wanted_hz = PART * counted.rate_hz(changed_s + STEADY_S, until_s)
    at_s = changed_s
    while at_s + SPAN_S <= until_s and counted.rate_hz(at_s, at_s + SPAN_S) < wanted_hz:
        at_s += SLICE_S
    return at_s - changed_s


def _change_figure(runs: list[float]) -> Figure:
    return figure(
        "new quota in force",
        runs,
        unit="s",
        definition=(
            f"from the acknowledged change {BEFORE} → {LARGE} to the first {SPAN_S:g} s at {PART:.0%} of the rate that "
            f"holds from {STEADY_S:g} s after it; one process throughout, a neighbour of {SMALL} beside it"
        ),
        bound=SETTLED,
    )
