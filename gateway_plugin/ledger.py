"""Who used a device for how long: what its token scheduler tells the agent, and the agent whoever asks. Facts only."""

from __future__ import annotations

import msgspec
from gshare.wire import Message


class Entry(msgspec.Struct, frozen=True):
    """One replica in the ledger."""

    replica: str
    function: str
    request: float
    limit: float
    units: tuple[int, ...]
    used_s: float
    """Device time in all. Beside others on its units the time that it held tokens, as the scheduler saw it; alone on
    them, where a token is kept while nothing runs, what the replica reported, at most that."""
    share: float
    """Of the last seconds (`Ledger.span_s`), the fraction that it used."""
    tokens: int
    waited_s: float
    """With demand and without a token, in all."""
    overused_s: float
    """Beyond its slices, in all; charged to what came next."""
    lost: int
    """Tokens that were taken away, since their holder did not return them in time."""
    connected: bool
    holding: bool
    held_s: float
    """Since the token that it holds was granted; that time is in no total yet. 0: it holds none."""
    waiting: bool
    ungated_core_s: float = 0.0
    """CPU devices: computed without a token, beyond what is allowed for handling requests, as the agent counted it."""


class Ledger(Message, frozen=True):
    """Who used the device for how long."""

    device: str
    at_s: float
    """When this was true, by the machine's monotonic clock; 0: never yet."""
    span_s: float
    entries: tuple[Entry, ...]
    functions: dict[str, float]
    """Device seconds in all by function, ended replicas included."""
