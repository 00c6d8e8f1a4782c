"""The token rule of one device: who may use which units, from when, for how long. Pure: time is an argument.

`request` is a guarantee wherever placement found a rectangle for everybody, `limit` is a wall; what is left over goes
to whoever asks. After every event, and at the time that the last decision named, `decide` says what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from gateway_plugin.node.tokens.choice import Room, choose
from gateway_plugin.node.tokens.claims import Claim, claim, next_look_s
from gateway_plugin.node.tokens.clients import Client, Token
from gateway_plugin.node.tokens.roster import Roster
from gateway_plugin.node.tokens.shares import (
    Admission,
    ClientView,
    Decision,
    Grant,
    TokenRuleError,
    TokenShare,
    check_quota,
    check_seconds,
    check_share,
)

__all__ = ["Admission", "ClientView", "Decision", "Grant", "TokenRule", "TokenRuleError", "TokenShare"]

_GRACE = 0.5
"""Of a window: how long after its deadline a token is taken away."""
_LATE = 2.0
"""In windows of its request: what a client is owed that its neighbours' blocks keep from its limit,"""
_LATE_MOST = 1.0
"""and one that owns most of the time, of which there is one at most on any unit."""
_ROUNDING_S = 1e-9


class TokenRule:
    """Times are seconds on one clock that never goes back. Wrong arguments raise TokenRuleError and change nothing."""

    def __init__(self, *, units: int, admission: Admission, window_s: float) -> None:
        if units < 1 or not 0 < window_s < math.inf:
            raise TokenRuleError(f"units {units}, window_s {window_s}: needs at least one unit and a window above 0")
        self._roster = Roster(units=units, admission=admission, window_s=window_s)
        self._now_s = -math.inf

    # Who there is

    def join(self, client: str, share: TokenShare, now_s: float, *, account: str = "") -> None:
        """A client that may ask. Those of one `account` (a replacement and its predecessor) share one quota."""
        self._check_now(now_s)
        check_share(share, units=self._roster.units)
        if client in self._roster.clients:
            raise TokenRuleError(f"{client} has joined already: resize it, or let it leave first")
        self._now_s = now_s
        self._roster.join(client, share, now_s, account=account or client)

    def leave(self, client: str, now_s: float) -> None:
        """It is forgotten; a token that it holds ends, used all along."""
        self.withdraw(client, now_s)
        self._roster.leave(self._client(client))

    def withdraw(self, client: str, now_s: float) -> None:
        """It wants nothing any more; a token that it holds ends, used all along. It may ask again."""
        self._check_now(now_s)
        one = self._client(client)
        self._now_s = now_s
        if one.waiting:
            self._roster.stop_waiting(one, now_s)
        if one.token is not None:
            self._roster.end(one.token, now_s, used_s=now_s - one.token.granted_s)

    def resize(self, client: str, *, request: float, limit: float, now_s: float) -> None:
        """Other quotas for its account, from now on; a token that is out under a higher limit is recalled."""
        self._check_now(now_s)
        check_quota(request=request, limit=limit)
        one = self._client(client)
        self._now_s = now_s
        self._roster.resize(one.account, request=request, limit=limit, now_s=now_s)

    # What clients say

    def ask(self, client: str, now_s: float, *, longest_block_s: float) -> None:
        """It has work. `longest_block_s`: the longest it runs between two gate points; asking again changes that."""
        self._check_now(now_s)
        check_seconds("longest_block_s", longest_block_s)
        one = self._client(client)
        if one.token is not None:
            raise TokenRuleError(f"{client} holds a token: it gives that back first")
        self._now_s = now_s
        one.block_s = longest_block_s
        one.account.block_s = max(one.account.block_s, longest_block_s)
        if not one.waiting:
            self._roster.wait(one, now_s)

    def give_back(self, client: str, now_s: float, *, used_s: float) -> None:
        """Its token ends; `used_s` of device time is booked, at most the time it was held."""
        self._check_now(now_s)
        check_seconds("used_s", used_s)
        one = self._client(client)
        if one.token is None:
            raise TokenRuleError(f"{client} holds no token")
        self._now_s = now_s
        self._roster.end(one.token, now_s, used_s=min(used_s, now_s - one.token.granted_s))

    # What is to be done

    def decide(self, now_s: float) -> Decision:
        """What to do now. Its grants, recalls and losses are in force: they are to be carried out."""
        self._check_now(now_s)
        self._now_s = now_s
        lost = self._take_away(now_s)
        ready, opens_s = self._ready(now_s)
        grants, recalls, look_s = self._hand_out(ready, now_s) if ready else ([], [], math.inf)
        turns = self._turns()
        recalls += self._recall(self._overdue(turns, now_s), now_s)
        return Decision(tuple(grants), tuple(recalls), lost, min(opens_s, look_s, self._next_end_s(turns, now_s)))

    # What a ledger asks

    def share_of(self, client: str) -> TokenShare:
        """Its units and its quotas as they are now. Raises: TokenRuleError."""
        one = self._client(client)
        return TokenShare(one.units, one.account.request, one.account.limit)

    def view(self, client: str, now_s: float) -> ClientView:
        """Raises: TokenRuleError."""
        self._check_now(now_s)
        return self._client(client).view(now_s)

    def views(self, now_s: float) -> tuple[ClientView, ...]:
        """All clients, in the order they joined."""
        self._check_now(now_s)
        return tuple(one.view(now_s) for one in self._roster.clients.values())

    @property
    def tokens_out(self) -> int:
        return len(self._roster.tokens)

    # The parts of a decision

    def _take_away(self, now_s: float) -> tuple[str, ...]:
        late = [token for token in self._roster.tokens.values() if self._taken_at_s(token) <= now_s]
        for token in late:
            self._roster.end(token, now_s, used_s=now_s - token.granted_s)
            token.holder.lost += 1
        return tuple(token.holder.name for token in late)

    def _hand_out(self, ready: list[Client], now_s: float) -> tuple[list[Grant], list[str], float]:
        """Who gets a token, who is recalled, and when to look again whether one takes another's place."""
        if len(ready) == 1 and not self._roster.tokens:
            return self._grant(ready, now_s), [], math.inf
        waiting = [claim(one, now_s) for one in ready]
        holding = [claim(token.holder, now_s) for token in self._roster.tokens.values() if not token.recalled]
        chosen = choose((*waiting, *holding), self._room(()))
        yielding = [one.client.token for one in holding if one not in chosen]
        recalls = self._recall([token for token in yielding if token is not None], now_s)
        grants = self._grant([one.client for one in chosen if one.client.token is None], now_s)
        look_s = now_s + self._look_in_s([one for one in waiting if one not in chosen], chosen)
        return grants, recalls, look_s

    def _ready(self, now_s: float) -> tuple[list[Client], float]:
        """Waiting clients that may have a token now (or are to have one soon), one an account; when that changes."""
        first: dict[int, Client] = {}
        change_s = math.inf
        for one in self._roster.waiting.values():
            if one.account.running:
                continue
            one.opens_s = one.account.wall.opens_at_s(now_s, one.block_s)
            claims_s = one.opens_s - self._lead_s(one, now_s)
            if one.opens_s > now_s + _ROUNDING_S:
                change_s = min(change_s, claims_s if claims_s > now_s + _ROUNDING_S else one.opens_s)
            if claims_s <= now_s + _ROUNDING_S:
                other = first.setdefault(id(one.account), one)
                if (one.asked_s, one.order) < (other.asked_s, other.order):
                    first[id(one.account)] = one
        return list(first.values()), change_s

    def _lead_s(self, one: Client, now_s: float) -> float:
        """How long before its wall opens its units are kept for it.

        Mostly not at all. But one that may not use much more than its request can never make up for a start that a
        neighbour's block delays. Once it is owed so much, half of the longest such block is left idle for it.
        """
        late = _LATE_MOST if one.account.request > 0.5 else _LATE
        if one.opens_s <= now_s or one.account.standing(now_s) <= late:
            return 0.0
        others = (*self._roster.waiting.values(), *(token.holder for token in self._roster.tokens.values()))
        return max((other.block_s for other in others if self._are_rivals(one, other)), default=0.0) / 2

    def _are_rivals(self, one: Client, other: Client) -> bool:
        """Whether one may have to wait for the other."""
        return other is not one and (self._roster.admission is Admission.SUM or bool(other.rows & one.rows))

    def _recall(self, tokens: list[Token], now_s: float) -> list[str]:
        for token in tokens:
            token.recall(now_s)
        return [token.holder.name for token in tokens]

    def _grant(self, chosen: list[Client], now_s: float) -> list[Grant]:
        """Tokens for those of the chosen for whom there is room already; the others wait for the recalled ones."""
        room = self._room(token.holder for token in self._roster.tokens.values())
        grants = []
        for one in chosen:
            if one.opens_s <= now_s + _ROUNDING_S and room.admits(one):
                room.fill(one)
                token = self._roster.start(one, now_s)
                alone = math.isinf(token.stop_s) and self._roster.is_alone(one)
                grants.append(Grant(one.name, token.stop_s - now_s, token.deadline_s, alone))
        return grants

    def _room(self, taken: Iterable[Client]) -> Room:
        return Room(units=self._roster.units, admission=self._roster.admission, taken=taken)

    def _look_in_s(self, passed_over: list[Claim], chosen: list[Claim]) -> float:
        """How long none of those passed over can take a holder's place."""
        times = [
            next_look_s(one, other)
            for one in passed_over
            for other in chosen
            if other.client.token and self._are_rivals(one.client, other.client)
        ]
        return min(times, default=math.inf)

    def _turns(self) -> dict[str, float]:
        """Holders whose token another member of their account waits for: when their turn, of request × W, ends."""
        wanted = {id(one.account) for one in self._roster.waiting.values() if one.account.running}
        if not wanted:
            return {}
        return {
            token.holder.name: token.granted_s + token.holder.account.request * self._roster.window_s
            for token in self._roster.tokens.values()
            if not token.recalled and id(token.holder.account) in wanted
        }

    def _overdue(self, turns: dict[str, float], now_s: float) -> list[Token]:
        """Of holders whose quota was lowered, or whose turn within their account is over."""
        return [
            token
            for token in self._roster.tokens.values()
            if not token.recalled and (token.cut or turns.get(token.holder.name, math.inf) <= now_s + _ROUNDING_S)
        ]

    def _next_end_s(self, turns: dict[str, float], now_s: float) -> float:
        """When the next token is taken away, or a turn within an account ends."""
        times = [self._taken_at_s(token) for token in self._roster.tokens.values()]
        times += [at_s for at_s in turns.values() if at_s > now_s + _ROUNDING_S]
        return min(times, default=math.inf)

    def _taken_at_s(self, token: Token) -> float:
        return token.deadline_s + _GRACE * self._roster.window_s

    def _client(self, client: str) -> Client:
        one = self._roster.clients.get(client)
        if one is None:
            raise TokenRuleError(f"{client} has not joined")
        return one

    def _check_now(self, now_s: float) -> None:
        if not self._now_s <= now_s < math.inf:
            raise TokenRuleError(f"now_s {now_s}: time goes on from {self._now_s}")
