"""Who should run now, of those that hold tokens and those that wait: most owed first, holders a little ahead. Pure.

A waiting client takes a holder's place when it is owed `STICKINESS` windows more than the holder, each measured by its
own request. That gives every client its request once in about so many windows, in one piece: where partitions of
different width follow each other, each change leaves units idle for up to a block, so changes must be few. A holder
that has run far past its request is that much behind, so whoever comes with a claim takes its place at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gateway_plugin.node.tokens.accounts import Account
from gateway_plugin.node.tokens.clients import Client
from gateway_plugin.node.tokens.shares import Admission

STICKINESS = 1.0
"""In windows of owed time."""
_ROUNDING = 1e-9


def choose(claims: Iterable[Client], now_s: float, *, units: int, admission: Admission) -> list[Client]:
    """Those of the claims (holders and waiting, of different accounts) that should run together, most owed first.

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


def crossing_s(waiting: Account, holding: Account, now_s: float) -> float:
    """When the waiting one may take the place of the holding one, at the earliest; inf: never."""
    w, h, window_s = waiting.standing(now_s), holding.standing(now_s), waiting.window_s
    times = [now_s + _overtakes_s(waiting, holding, now_s)]
    if w <= 0:
        times.append(now_s - w * window_s + _STEP * window_s)
        gap = QUANTUM - holding.wall.used_s(now_s) / window_s + waiting.wall.used_s(now_s) / window_s
        times.append(now_s + max(_STEP, gap / 2) * window_s)
    if h > -SPENT:
        times.append(now_s + (h + SPENT) * window_s * holding.request / (1 - holding.request + 1e-9) + 1e-6)
    return min(times)


_STEP = 0.02
SPENT = 0.25
QUANTUM = 0.25


def _overtakes_s(waiting: Account, holding: Account, now_s: float) -> float:
    gap = holding.standing(now_s) + bonus(holding) - waiting.standing(now_s)
    if gap <= _ROUNDING:
        return math.inf
    window_s, request = waiting.window_s, holding.request
    rises_for_s, falls_for_s = waiting.rises_for_s(now_s), holding.falls_for_s(now_s)
    after_s = 0.0
    for until_s in sorted((rises_for_s, falls_for_s)):
        speed = (rises_for_s > after_s) + (falls_for_s > after_s) * (1 - request) / request
        closed = speed * (until_s - after_s) / window_s
        if closed >= gap:
            return after_s + gap * window_s / speed
        gap -= closed
        after_s = until_s
    return math.inf


def _weight(client: Client, now_s: float) -> float:
    account = client.account
    owed = account.standing(now_s)
    used = account.wall.used_s(now_s) / account.window_s
    if client.token is None:
        return owed if owed > 0 else -used
    if owed > -SPENT:
        return owed + bonus(account) - _ROUNDING
    used += min(1, (now_s - client.token.granted_s) / account.window_s)
    return min(0.0, QUANTUM - used)


def _rank(client: Client, now_s: float) -> tuple[float, bool, float, float, int]:
    """Smaller is earlier: most owed; holders before others; least used in the window; longest waiting; first joined."""
    holding = client.token is not None
    return (-_weight(client, now_s), not holding, client.account.wall.used_s(now_s), client.asked_s, client.order)



TIGHT = 0.5


def bonus(account: Account) -> float:
    return STICKINESS + TIGHT * account.request / account.limit if account.limit < 1 else STICKINESS
