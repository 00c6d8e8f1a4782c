"""What the token rule is told and what it answers: plain facts, and the one error for what makes no sense. Pure."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass


class TokenRuleError(ValueError):
    """The rule was told something that cannot be; its state is as before."""


class Admission(enum.Enum):
    """Which tokens may be out at the same time."""

    EXCLUSIVE = "exclusive"
    """No unit under two tokens (cpu: a unit is a core)."""
    SUM = "sum"
    """The units of all tokens out sum to at most the device's (cuda: a unit is a share of its SMs)."""


@dataclass(frozen=True, slots=True)
class TokenShare:
    """What one client may use."""

    units: tuple[int, ...]
    """Which units it owns, by index: the rows of its rectangle."""
    request: float
    """Guaranteed fraction of the time."""
    limit: float
    """Fraction of the time that it never passes."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A token: the right to use the client's units."""

    client: str
    slice_s: float
    """Stop at the first gate point after so long; inf: run until recalled."""
    deadline_s: float
    """On the rule's clock: slice + 2 × longest block; half a window later the token is taken away.
    A recall at `t` brings it forward to at most `t` + 2 × longest block."""
    alone: bool
    """Nobody else can want these units and no wall stands: keep it between requests, until recalled."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done now, and when to ask again if nothing happens before."""

    grants: tuple[Grant, ...]
    recalls: tuple[str, ...]
    """Holders to be told that somebody waits; each is told once a token."""
    lost: tuple[str, ...]
    """Whose token was taken away: it did not come back in time."""
    wake_at_s: float
    """inf: nothing changes by itself."""


@dataclass(frozen=True, slots=True)
class ClientView:
    """What a ledger wants to know of one client."""

    client: str
    account: str
    share: TokenShare
    holding: bool
    waiting_s: float
    """Since it asked; 0 while it does not wait."""
    used_s: float
    """Device time in all, as booked; a token that is out is booked when it ends."""
    window_use_s: float
    """Its account's use in the last window, as booked."""
    overuse_s: float
    """Device time after a slice's end or a recall, in all."""
    lost: int
    """Tokens that were taken away from it."""


def check_share(share: TokenShare, *, units: int) -> None:
    """Raises: TokenRuleError, naming the value."""
    if not share.units or len(set(share.units)) != len(share.units):
        raise TokenRuleError(f"units {share.units}: at least one, none twice")
    if not all(0 <= unit < units for unit in share.units):
        raise TokenRuleError(f"units {share.units}: this device has units 0 to {units - 1}")
    check_quota(request=share.request, limit=share.limit)


def check_quota(*, request: float, limit: float) -> None:
    """Raises: TokenRuleError, naming the values."""
    if not 0 < request <= limit <= 1:
        raise TokenRuleError(f"request {request}, limit {limit}: needs 0 < request <= limit <= 1")


def check_seconds(name: str, value_s: float) -> None:
    """Raises: TokenRuleError, naming the value."""
    if not 0 <= value_s < math.inf:
        raise TokenRuleError(f"{name} {value_s}: needs seconds, 0 or more")
