"""`gshare verify`: what the user wrote, what becomes of it, and the exit code."""

from __future__ import annotations

import shutil
import signal

from rich.console import Console

from gateway_plugin import client, machine
from gateway_plugin.errors import CannotVerify, PluginError, StoreUnavailable
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.verify import passive, report
from gateway_plugin.verify.agent_link import AgentLink
from gateway_plugin.verify.figures import Verdict
from gateway_plugin.verify.measure import verify
from gateway_plugin.verify.plan import Plan

EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.UNCLEAR: 2}
LEAST_SHARE = 0.05
"""A smaller one is not much more than the tolerance."""
LEAST_WIDTH = 150


def parse_shares(text: str) -> tuple[float, ...]:
    """Raises: CannotVerify: fewer than two, one out of range, or a sum that nobody can guarantee."""
    shares = tuple(_share(part.strip()) for part in text.split(","))
    if len(shares) < 2:
        raise CannotVerify(f"--shares {text}: at least two, e.g. 0.3,0.6; one alone has nobody to be held against")
    if sum(shares) > 1 + 1e-9:
        raise CannotVerify(f"--shares {text}: they sum to {sum(shares):g}, and a device has 1 to give; lower one")
    return shares


def plan_of(
    *, device: str, shares: str, seconds: float, ungated: tuple[int, ...], disturb: bool, pause_ms: float
) -> Plan:
    """Raises: CannotVerify naming option, value and what is allowed."""
    wanted = parse_shares(shares)
    unknown = [number for number in ungated if not 1 <= number <= len(wanted)]
    if unknown:
        raise CannotVerify(f"--ungated {unknown[0]}: probes are numbered 1 to {len(wanted)}, as in --shares")
    return Plan(
        device=device,
        shares=wanted,
        seconds=seconds,
        ungated=frozenset(ungated),
        disturb=disturb,
        pause_s=pause_ms / 1000,
    )


def run(settings: Settings, plan: Plan, *, as_json: bool) -> int:
    """Measure, show, and return the exit code. Raises: PluginError: it cannot be measured."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
    console = _console()
    progress = Console(stderr=True, highlight=False, style="dim", quiet=as_json)
    try:
        with AgentLink(Paths(settings.home).agent_socket) as link:
            found = verify(link, plan, progress.print)
    except KeyboardInterrupt:
        raise CannotVerify("interrupted; its probes have ended") from None
    if as_json:
        console.print(report.to_json(found), markup=False)
    else:
        report.show(found, console)
    return EXIT_CODES[found.verdict]


def run_passive(settings: Settings, *, device: str, as_json: bool) -> int:
    """Show ledgers (of one device, or of all) and counts; 1 if by them a replica is over its limit.

    Raises:
        PluginError: there is nothing to read.
    """
    console = _console()
    with AgentLink(Paths(settings.home).agent_socket) as link:
        ledgers = [link.ledger(device)] if device else list(link.ledgers())
    found = passive.read(ledgers, _invocations(settings, quiet=as_json))
    if as_json:
        console.print(passive.to_json(found), markup=False)
    else:
        passive.show(found, console)
    return EXIT_CODES[Verdict.FAIL] if found.over_limit else EXIT_CODES[Verdict.PASS]


def _invocations(settings: Settings, *, quiet: bool) -> dict[str, int]:
    """Requests by function; none if the gateway does not answer, which is told."""
    running = machine.processes(Paths(settings.home))
    url = machine.gateway_url(machine.settings_in_force(running) if running else settings)
    try:
        return {view.name: view.invocations for view in client.functions(url)}
    except StoreUnavailable as error:
        Console(stderr=True, quiet=quiet).print(f"no counts of invocations: {error}")
        return {}


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise CannotVerify(f"--shares: {text!r} is no number; write fractions of the time, e.g. 0.3,0.6") from None
    if not LEAST_SHARE <= value <= 1:
        hint = f"; did you mean {value / 100:g}?" if 1 < value <= 100 else ""
        raise CannotVerify(f"--shares: {text} is not accepted; {LEAST_SHARE:g} to 1 of the time{hint}")
    return value


def _console() -> Console:
    return Console(highlight=False, soft_wrap=True, width=max(LEAST_WIDTH, shutil.get_terminal_size().columns))


def explain(error: PluginError) -> int:
    """Tell why nothing was judged; the exit code of that."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"cannot verify: {error}", markup=False)
    return EXIT_CODES[Verdict.UNCLEAR]
