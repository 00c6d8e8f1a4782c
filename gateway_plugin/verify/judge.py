"""From figures to verdicts. Pure.

A figure passes within its tolerance. It fails when it is off by more than tolerance and noise together. In between, and
where the load could not show it, nobody can tell, and the verdict says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gateway_plugin.verify.figures import (
    IDLE,
    RATIO_TOLERANCE,
    SHARE_TOLERANCE,
    Finding,
    ProbeFigures,
    SideFigures,
    Source,
    Verdict,
)

OTHER_PROCESSES = "too far off, but other processes used the same cores meanwhile"
TOO_VAGUE = "too uncertain: try longer (--seconds), or a machine that is less busy"


def judge_shares(probes: Sequence[ProbeFigures], *, others: float) -> tuple[Finding, ...]:
    """Two findings a probe, its share as we counted it and as the ledger has it, and a ratio for each pair.

    Args:
        others: part of the units' time that others used meanwhile.
    """
    counted = [_counted(probe, others=others) for probe in probes]
    ledger = [
        _ledger(probe, others=others, free=bool(found.broke)) for probe, found in zip(probes, counted, strict=True)
    ]
    culprits = sorted({finding.broke for finding in (*counted, *ledger) if finding.broke})
    ratios = [_ratio(probes[0], probe, others=others) for probe in probes[1:]]
    findings = [finding for pair in zip(counted, ledger, strict=True) for finding in pair] + ratios
    return tuple(_blame(finding, culprits) for finding in findings)


def judge_side_by_side(sides: Sequence[SideFigures], *, others: float) -> tuple[Finding, ...]:
    """One finding a probe: on units of its own it loses nothing to a neighbour's tokens."""
    return tuple(_side(side, others=others) for side in sides)


def overall(findings: Sequence[Finding]) -> tuple[Verdict, str]:
    """The verdict on everything, and a sentence that names who broke its share."""
    culprits = sorted({finding.broke for finding in findings if finding.broke})
    failed = [finding for finding in findings if finding.verdict is Verdict.FAIL]
    unclear = [finding for finding in findings if finding.verdict is Verdict.UNCLEAR]
    if culprits:
        return Verdict.FAIL, f"{' and '.join(culprits)} broke {'its' if len(culprits) == 1 else 'their'} share"
    if failed:
        return Verdict.FAIL, "; ".join(f"{finding.what}: {finding.reason}" for finding in failed)
    if unclear:
        return Verdict.UNCLEAR, "; ".join(dict.fromkeys(finding.reason for finding in unclear))
    return Verdict.PASS, "every share is as asked"


def _counted(probe: ProbeFigures, *, others: float) -> Finding:
    uncertainty = probe.share * probe.noise + probe.edge
    finding = Finding(
        what=f"share of {probe.name}",
        asked=probe.asked,
        measured=probe.share,
        tolerance=SHARE_TOLERANCE,
        uncertainty=uncertainty,
        source=Source.COUNTED,
        verdict=Verdict.PASS,
    )
    if probe.share > probe.ledger_share + SHARE_TOLERANCE + uncertainty - probe.edge:  # of one stretch: no edge
        reason = f"it computed without a token: the ledger has only {probe.ledger_share:.2f}"
        return replace(finding, verdict=Verdict.FAIL, reason=reason, broke=probe.name)
    if probe.share > probe.asked + SHARE_TOLERANCE + uncertainty:
        return replace(finding, verdict=Verdict.FAIL, reason="more than its limit", broke=probe.name)
    return _within(finding, wrong="less than its request", doubt=_doubt(probe, others=others), loss=probe.elsewhere)


def _ledger(probe: ProbeFigures, *, others: float, free: bool) -> Finding:
    """`free`: it was found to take more than it may, with tokens or without."""
    finding = Finding(
        what=f"share of {probe.name}",
        asked=probe.asked,
        measured=probe.ledger_share,
        tolerance=SHARE_TOLERANCE,
        uncertainty=probe.edge,
        source=Source.SCHEDULER,
        verdict=Verdict.PASS,
    )
    if free and probe.ledger_share < probe.asked - SHARE_TOLERANCE - probe.edge:
        return replace(finding, verdict=Verdict.FAIL, reason="it did not ask for tokens", broke=probe.name)
    if probe.ledger_share > probe.asked + SHARE_TOLERANCE + probe.edge:
        return replace(finding, verdict=Verdict.FAIL, reason="more than its limit", broke=probe.name)
    return _within(finding, wrong="less than its request", doubt=_doubt(probe, others=others), loss=probe.elsewhere)


def _ratio(first: ProbeFigures, other: ProbeFigures, *, others: float) -> Finding:
    asked = other.asked / first.asked
    measured = other.together_rate / first.together_rate if first.together_rate else 0.0
    finding = Finding(
        what=f"completions, {other.name} to {first.name}",
        asked=asked,
        measured=measured,
        tolerance=RATIO_TOLERANCE * asked,
        uncertainty=max(probe.noise + probe.edge / probe.asked for probe in (first, other)) * asked,
        source=Source.COUNTED,
        verdict=Verdict.PASS,
    )
    doubt = _doubt(first, others=others) or _doubt(other, others=others)
    loss = max(first.elsewhere, other.elsewhere) / min(first.asked, other.asked) * asked
    return _within(finding, wrong="not as asked", doubt=doubt, loss=loss, gain=loss)


def _side(side: SideFigures, *, others: float) -> Finding:
    finding = Finding(
        what=f"{side.name} beside another",
        asked=1.0,
        measured=min(1.0, side.ratio),
        tolerance=RATIO_TOLERANCE,
        uncertainty=side.noise,
        source=Source.COUNTED,
        verdict=Verdict.PASS,
    )
    doubt = side.lost_scheduler or _others(others)
    return _within(finding, wrong="it had to wait for a neighbour on other units", doubt=doubt, loss=side.elsewhere)


def _within(finding: Finding, *, wrong: str, doubt: str, loss: float = 0.0, gain: float = 0.0) -> Finding:
    """The verdict by distance from what was asked.

    Args:
        wrong: what it means to be too far off.
        doubt: why the distance says nothing.
        loss: how much lower it may be since other processes used the same cores; `gain`: how much higher.
    """
    off = finding.measured - finding.asked
    excuse = finding.tolerance + finding.uncertainty
    if doubt:
        return replace(finding, verdict=Verdict.UNCLEAR, reason=doubt)
    if off > excuse + gain or off < -(excuse + loss):
        return replace(finding, verdict=Verdict.FAIL, reason=wrong)
    if abs(off) > excuse:
        return replace(finding, verdict=Verdict.UNCLEAR, reason=OTHER_PROCESSES)
    if max(abs(off), finding.uncertainty) > finding.tolerance:
        return replace(finding, verdict=Verdict.UNCLEAR, reason=TOO_VAGUE)
    return finding


def _doubt(probe: ProbeFigures, *, others: float) -> str:
    """Why its shortfall would say nothing about its share; empty if it would."""
    if probe.lost_scheduler:
        return f"{probe.name} lost its scheduler: {probe.lost_scheduler}"
    if not probe.saturating:
        return (
            f"the load of {probe.name} was too light to judge: it had work for {probe.wanted:.0%} of the time and "
            f"waited for tokens for {probe.waited:.0%}"
        )
    return _others(others)


def _others(others: float) -> str:
    return f"others used {others:.0%} of the device meanwhile" if others > IDLE else ""


def _blame(finding: Finding, culprits: Sequence[str]) -> Finding:
    """A shortfall beside a probe that broke its share is that one's doing."""
    if finding.verdict is Verdict.FAIL and not finding.broke and culprits:
        return replace(finding, reason=f"{finding.reason}, since {' and '.join(culprits)} took more")
    return finding
