"""How strong a client's claim to its units is, at one moment. Pure.

Most owed first; of those that are owed nothing, who used least in the window. A holder is not put off lightly, since
where partitions of different width follow each other, each change leaves units idle for up to a block:

- while it has not run far past its request, a waiting client takes its place only when owed `STICKINESS` windows more,
  each measured by its own request, so that all run about once in so many windows, in one piece;
- one that has run further yields at once to whoever is owed something, and to others when it has used `QUANTUM` of a
  window more than they.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateway_plugin.node.tokens.accounts import DEBT
from gateway_plugin.node.tokens.clients import Client

STICKINESS = 0.85
QUANTUM = 0.25
_STEP = 0.05
"""Of a window: how long at least until two clients that are owed nothing are compared again."""
_ROUNDING = 1e-9


@dataclass(slots=True)
class Claim:
    """Of a client that holds a token, or of one that waits and may have one now."""

    client: Client
    standing: float
    """In windows of its request."""
    used: float
    """In the window, as a fraction of it; a token that is out counts as used."""
    weight: float
    """More goes first; above zero: it is owed something, or has a token and has not run far past its request."""

    @property
    def place(self) -> tuple[float, bool, float, float, int]:
        """For sorting: by weight, holders before others, least used, longest waiting, first joined."""
        client = self.client
        return (-self.weight, client.token is None, self.used, client.asked_s, client.order)


def claim(client: Client, now_s: float) -> Claim:
    """The claim of this client."""
    account = client.account
    standing = account.standing(now_s)
    used = account.wall.used_s(now_s) / account.window_s
    if client.token is not None:
        used += (now_s - client.token.granted_s) / account.window_s
        weight = min(0.0, QUANTUM - used) if _is_spent(standing) else standing + STICKINESS - _ROUNDING
    else:
        weight = max(standing, _ROUNDING) if _is_owed(standing) else -used
    return Claim(client, standing, used, weight)


def next_look_s(waiting: Claim, holding: Claim) -> float:
    """How long the waiting one cannot take the place of the holding one, if nothing else happens."""
    account = holding.client.account
    spent_in, passed_in = _spent_in(holding), _passed_in(waiting, holding)
    if _is_owed(waiting.standing):
        soonest = min(spent_in or math.inf, passed_in)
    else:
        by_claim = max(min(spent_in, passed_in), -waiting.standing)
        by_use = max(spent_in, (QUANTUM - holding.used + waiting.used) / 2, _STEP)
        soonest = min(by_claim, by_use)
    return soonest * account.window_s


def _spent_in(holding: Claim) -> float:
    """In how many windows it will have run far past its request; 0: it has."""
    request = holding.client.account.request
    if _is_spent(holding.standing):
        return 0.0
    return (holding.standing + DEBT) * request / (1 - request) if request < 1 else math.inf


def _passed_in(waiting: Claim, holding: Claim) -> float:
    """In how many windows the one will be owed STICKINESS more than the other; inf: it is."""
    gap = holding.standing + STICKINESS - waiting.standing
    return gap * holding.client.account.request if gap > _ROUNDING else math.inf


def _is_owed(standing: float) -> bool:
    return standing > -_ROUNDING


def _is_spent(standing: float) -> bool:
    return standing < -DEBT + _ROUNDING
