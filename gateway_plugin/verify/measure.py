"""The course of a verification: choose a device that is idle, measure, judge."""

from __future__ import annotations

from collections.abc import Sequence

from gateway_plugin.agent_protocol import PROBE_FUNCTION
from gateway_plugin.errors import CannotVerify
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device
from gateway_plugin.verify.agent_link import AgentLink
from gateway_plugin.verify.figures import IDLE, Report
from gateway_plugin.verify.judge import judge_shares, judge_side_by_side, overall
from gateway_plugin.verify.plan import Plan, Say
from gateway_plugin.verify.shares import measure_shares
from gateway_plugin.verify.sides import measure_sides
from gateway_plugin.verify.team import Team, sharing


def verify(link: AgentLink, plan: Plan, say: Say) -> Report:
    """Measure and judge. Raises: PluginError: it cannot be measured as things are."""
    device = choose_device(link.devices(), plan.device)
    if not plan.disturb:
        require_idle(link.ledger(device.id), device, set(range(device.units)))
    with Team(link, device, pause_s=plan.pause_s) as team:
        conditions, probes = measure_shares(team, plan, device=device, say=say)
    findings = judge_shares(probes, others=conditions.others)
    notes = []
    if device.units < 2:
        notes.append(f"{device.id} has one unit, so there is no second partition to run beside the first")
    elif conditions.degraded:
        notes.append(f"partitions are not checked, as they are not in force: {conditions.degraded}")
    else:
        with Team(link, device) as team:
            sides, others = measure_sides(team, plan, device=device, say=say)
        findings += judge_side_by_side(sides, others=others)
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
