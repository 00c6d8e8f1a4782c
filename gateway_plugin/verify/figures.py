"""What `gshare verify` measured, and what became of it. Facts only."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import mean, stdev

SHARE_TOLERANCE = 0.02
"""How far a share may be from what was asked: so many points of the device's time."""
RATIO_TOLERANCE = 0.05
"""How far a ratio may be from what was asked, as a part of it."""
IDLE = 0.02
"""A device of which others use less than this is idle."""
SATURATED = 0.97
"""A load is heavy enough if there was a block at hand for at least this part of the time."""


class Verdict(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNCLEAR = "cannot judge"


class Source(StrEnum):
    """Whose word a figure is."""

    COUNTED = "counted by us"
    SCHEDULER = "measured by the scheduler"
    BOUNDED = "self-reported while alone on its units, and bounded by the scheduler; else measured by the scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeFigures:
    """One probe that ran with others on the same units."""

    name: str
    asked: float
    """Its request and its limit."""
    gated: bool
    """It asks for tokens; False: told not to, to see a failure."""
    alone_rates: tuple[float, ...]
    """Blocks per second without any scheduler and with the units for itself, several times over.

    On cores they are per second of CPU time, so that what other processes take away does not count.
    """
    together_rate: float
    """Blocks per second while all run."""
    core_rate: float | None
    """Blocks per second of CPU time while all run; None on a GPU, whose driver keeps no such account."""
    ledger_share: float
    """Its part of the device's time while all run, by the scheduler's ledger."""
    by_second: tuple[int, ...]
    """Blocks in each second in which all ran; the last one may be a part of one."""
    wanted: float
    """Part of the time in which it had a block at hand."""
    waited: float
    """Part of the time in which it had one and waited for a token."""
    elsewhere: float
    """Part of its cores' time that went to processes other than probes while all ran."""
    edge: float
    """What a share may be off since the stretch begins and ends somewhere in a window and in a block."""
    lost_scheduler: str
    """Why it was not held by tokens all along; empty: it was, or was not to be."""

    @property
    def alone_rate(self) -> float:
        return mean(self.alone_rates)

    @property
    def full_rate(self) -> float:
        """Blocks per second that it would have got done with the units for itself.

        A core gets slower and faster, with its sibling in the same physical core above all: what a block took of CPU
        time meanwhile is a better measure of that than what it took before.
        """
        return self.core_rate or self.alone_rate

    @property
    def noise(self) -> float:
        """How far that may be off, as a part of it."""
        return 0.0 if self.core_rate else _noise(self.alone_rates)

    @property
    def share(self) -> float:
        """Of what it would have got done with the units for itself, the part that it got done."""
        return self.together_rate / self.full_rate

    @property
    def peak(self) -> float:
        """The largest share in any one second."""
        return max(self.by_second) / self.full_rate

    @property
    def saturating(self) -> bool:
        """Whether it was held back by its share and by nothing else."""
        return self.wanted >= SATURATED and (not self.gated or self.asked > SATURATED or self.waited > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFigures:
    """One probe on units of its own, while another runs beside it on others."""

    name: str
    free_rates: tuple[float, ...]
    """How fast it goes while both run without any scheduler, several times over; see `Team.pace`."""
    gated_rates: tuple[float, ...]
    """The same with tokens."""
    elsewhere: float
    """Part of both cores' time that went to processes other than probes while tokens were asked for."""
    lost_scheduler: str

    @property
    def noise(self) -> float:
        """How far the mean of the rates without a scheduler may be off, as a part of it."""
        return _noise(self.free_rates)

    @property
    def ratio(self) -> float:
        return mean(self.gated_rates) / mean(self.free_rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One figure, held against what was asked."""

    what: str
    asked: float
    measured: float
    tolerance: float
    uncertainty: float
    source: Source
    verdict: Verdict
    reason: str = ""
    """Why it is not a pass."""
    broke: str = ""
    """The probe that took more than its share, if this shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How it was measured."""

    device: str
    kind: str
    units: int
    """Of the device."""
    window_s: float
    block_s: float
    seconds: float
    """That all probes ran together."""
    others: float
    """Part of the units' time that others used meanwhile, by the ledger."""
    elsewhere: float
    """Part of its cores' time that went to processes other than probes while all ran; 0 on a GPU."""
    degraded: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All of it."""

    verdict: Verdict
    summary: str
    conditions: Conditions
    probes: tuple[ProbeFigures, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]


def _noise(rates: tuple[float, ...]) -> float:
    """Two standard errors of their mean, as a part of it; one rate alone says nothing of how far it is off."""
    return 2 * stdev(rates) / math.sqrt(len(rates)) / mean(rates) if len(rates) > 1 else 1.0
