"""Who should run now, of those that hold tokens and those that wait. Pure.

Most owed first; of those that are owed nothing, who used least in the window. A holder is not put off lightly, since
where partitions of different width follow each other, each change leaves units idle for up to a block:

- while it has not run far past its request, a waiting client takes its place only when owed `STICKINESS` windows more,
  each measured by its own request, so that all run about once in so many windows, in one piece;
- one that has run further yields at once to whoever is owed something, and to others when it has used `QUANTUM` of a
  window more than they.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gateway_plugin.node.tokens.accounts import DEBT, Account
from gateway_plugin.node.tokens.clients import Client
from gateway_plugin.node.tokens.shares import Admission

STICKINESS = 0.85
QUANTUM = 0.25
_STEP = 0.05
"""Of a window: how long at least until two clients that are owed nothing are compared again."""
_ROUNDING = 1e-9


def choose(claims: Iterable[Client], now_s: float, *, units: int, admission: Admission) -> list[Client]:
    """Those of the claims (holders and waiting, of different accounts) that should run together, the first ones first.

    Two passes. First those that are owed something, none on another's rows: so the guarantees follow the rectangles,
    for which there is a way to meet them all. Then whoever fits besides by the rule of admission.
    """
    ranked = sorted((_rank(client, now_s), client) for client in claims)
    chosen: list[Client] = []
    rest: list[Client] = []
    rows = width = 0
    for rank, client in ranked:
        if rank[0] < 0 and not rows & client.rows:
            chosen.append(client)
            rows |= client.rows
            width += client.width
        else:
            rest.append(client)
    for client in rest:
        if fits(client, rows, width, units=units, admission=admission):
            chosen.append(client)
            rows |= client.rows
            width += client.width
    return chosen


def fits(client: Client, rows: int, width: int, *, units: int, admission: Admission) -> bool:
    """Whether it may run beside tokens on these rows, of this many units in all."""
    if admission is Admission.EXCLUSIVE:
        return not rows & client.rows
    return width + client.width <= units


def next_look_s(waiting: Account, holding: Account, now_s: float) -> float:
    """When the waiting one may take the place of the holding one, if nothing else happens: not before then."""
    wants, has = waiting.standing(now_s), holding.standing(now_s)
    window_s, request = waiting.window_s, holding.request
    times_s = []
    if not _is_owed(wants):
        times_s.append(-wants * window_s)
        lead = (holding.wall.used_s(now_s) - waiting.wall.used_s(now_s)) / window_s
        times_s.append(max((QUANTUM - lead) / 2, _STEP) * window_s)
    if not _is_spent(has):
        if request < 1:
            times_s.append((has + DEBT) * window_s * request / (1 - request))
        gap = has + STICKINESS - wants
        if gap > _ROUNDING:
            times_s.append(gap * window_s * request)
    return now_s + min(times_s, default=math.inf)


def _is_owed(standing: float) -> bool:
    return standing > -_ROUNDING


def _is_spent(standing: float) -> bool:
    return standing < -DEBT + _ROUNDING


def _rank(client: Client, now_s: float) -> tuple[float, bool, float, float, int]:
    """Smaller is earlier: by weight, holders before others, least used in the window, longest waiting, first joined."""
    account = client.account
    used = account.wall.used_s(now_s) / account.window_s
    weight = _weight_to_start(account, used, now_s) if client.token is None else _weight_to_stay(client, used, now_s)
    return (-weight, client.token is None, used, client.asked_s, client.order)


def _weight_to_start(account: Account, used: float, now_s: float) -> float:
    owed = account.standing(now_s)
    return max(owed, _ROUNDING) if _is_owed(owed) else -used


def _weight_to_stay(client: Client, used: float, now_s: float) -> float:
    owed = client.account.standing(now_s)
    if not _is_spent(owed):
        return owed + STICKINESS - _ROUNDING
    held_s = now_s - client.token.granted_s if client.token else 0.0
    return min(0.0, QUANTUM - used - held_s / client.account.window_s)
