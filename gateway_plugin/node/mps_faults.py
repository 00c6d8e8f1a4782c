"""Tells a fault that took a whole device down from replicas that merely died, and who caused it. Pure.

A fatal exception in one MPS client (an illegal address, an assertion in a kernel) is delivered to every client of the
device, and NVIDIA's text promises no word about whose it was. So the evidence is weighed:

- a server in state FAULT, or a log line that says so, is a fault;
- several replicas that die within a moment are one only where the daemon does not answer for its server any more: a
  server that says it is well has not faulted, and neighbours must not be stopped for two deaths of another cause.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOMENT_S = 2.0
"""Deaths of one fault follow each other within this time."""
RECENT_S = 15.0
"""A death longer ago is no evidence any more; asking a daemon that hangs takes seconds, so it is not a moment."""
_SPEAKS_OF_FAULT = re.compile(r"\b(?:fatal|fault(?:ed|ing|s)?|unrecoverable)\b", re.IGNORECASE)
_CLIENT = re.compile(r"\b(?:client|pid)\b\W*(?:pid\W*)?(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Death:
    """A replica's process that ended without being told to."""

    replica: str
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of one device at one moment."""

    now_s: float
    deaths: Sequence[Death]
    answers: bool
    """Whether the daemon answered."""
    faulted_servers: Sequence[int]
    """Servers in state FAULT."""
    log_lines: Sequence[str]
    """What daemon and servers have written since the last look."""
    clients: Mapping[int, str]
    """Replica of each client's process, dead ones included."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A device all of whose clients are lost."""

    culprit: str
    """Id of the replica that caused it, as far as can be told; empty: it cannot."""
    text: str


def judge(seen: Evidence) -> Fault | None:
    """The fault that the evidence shows, if it shows one."""
    recent = _last_moment(seen)
    lines = [line for line in seen.log_lines if _SPEAKS_OF_FAULT.search(line)]
    sign = _sign(seen, lines=lines, deaths=len(recent))
    if not sign:
        return None
    named = _named(lines, seen.clients)
    if named:
        return Fault(named, f"{sign}; caused by {named}, which the MPS log names")
    if recent:
        return Fault(recent[0].replica, f"{sign}; probably caused by {recent[0].replica}, the first to die")
    return Fault("", f"{sign}; nothing shows which replica caused it")


def _last_moment(seen: Evidence) -> list[Death]:
    """The newest death and those just before it, the first one first; nothing when it is long ago."""
    deaths = sorted(seen.deaths, key=lambda one: (one.at_s, one.replica))
    if not deaths or seen.now_s - deaths[-1].at_s > RECENT_S:
        return []
    return [death for death in deaths if deaths[-1].at_s - death.at_s <= MOMENT_S]


def _sign(seen: Evidence, *, lines: Sequence[str], deaths: int) -> str:
    if seen.faulted_servers:
        return f"MPS server {seen.faulted_servers[0]} is in state FAULT"
    if lines:
        return f"the MPS log says {lines[0].strip()!r}"
    if deaths > 1 and not seen.answers:
        return f"{deaths} replicas died within {MOMENT_S:g} s and the MPS daemon does not answer"
    return ""


def _named(lines: Sequence[str], clients: Mapping[int, str]) -> str:
    """The first client of ours that a line about a fault names."""
    pids = (int(match) for line in lines for match in _CLIENT.findall(line))
    return next((clients[pid] for pid in pids if pid in clients), "")
