"""The token rule of one device: who may use which units, from when, for how long. Pure: time is an argument.

`request` is a guarantee wherever placement found a rectangle for everybody, `limit` is a wall; what is left over goes
to whoever asks. After every event, and at the time that the last decision named, `decide` says what to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gateway_plugin.node.tokens.accounts import CLAIM, Account
from gateway_plugin.node.tokens.choice import choose, fits, next_look_s
from gateway_plugin.node.tokens.clients import Client, Token
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
_ROUNDING_S = 1e-9


class TokenRule:
    """Times are seconds on one clock that never goes back. Wrong arguments raise TokenRuleError and change nothing."""

    def __init__(self, *, units: int, admission: Admission, window_s: float) -> None:
        if units < 1 or not 0 < window_s < math.inf:
            raise TokenRuleError(f"units {units}, window_s {window_s}: needs at least one unit and a window above 0")
        self._units = units
        self._admission = admission
        self._window_s = window_s
        self._clients: dict[str, Client] = {}
        self._accounts: dict[str, Account] = {}
        self._waiting: dict[str, Client] = {}
        self._holding: dict[str, Client] = {}
        self._owners = [0] * units
        self._joined = 0
        self._now_s = -math.inf

    # Who there is

    def join(self, client: str, share: TokenShare, now_s: float, *, account: str = "") -> None:
        """A client that may ask. Those of one `account` (a replacement and its predecessor) share one quota."""
        self._check_now(now_s)
        check_share(share, units=self._units)
        if client in self._clients:
            raise TokenRuleError(f"{client} has joined already: resize it, or let it leave first")
        self._now_s = now_s
        name = account or client
        shared = self._accounts.get(name)
        if shared is None:
            shared = Account(request=share.request, limit=share.limit, window_s=self._window_s, now_s=now_s)
            self._accounts[name] = shared
        shared.members += 1
        self._joined += 1
        rows = sum(1 << unit for unit in share.units)
        self._clients[client] = Client(client, self._joined, share.units, rows, name, shared)
        self._count(share.units, 1)
        if shared.members > 1:
            self.resize(client, request=share.request, limit=share.limit, now_s=now_s)

    def leave(self, client: str, now_s: float) -> None:
        """It is forgotten; a token that it holds ends, used all along."""
        self.withdraw(client, now_s)
        gone = self._clients.pop(client)
        self._count(gone.units, -1)
        gone.account.members -= 1
        if not gone.account.members:
            del self._accounts[gone.account_name]

    def withdraw(self, client: str, now_s: float) -> None:
        """It wants nothing any more; a token that it holds ends, used all along. It may ask again."""
        self._check_now(now_s)
        one = self._client(client)
        self._now_s = now_s
        if one.waiting:
            self._stop_waiting(one, now_s)
        if one.token is not None:
            self._end(one, one.token, now_s, used_s=now_s - one.token.granted_s)

    def resize(self, client: str, *, request: float, limit: float, now_s: float) -> None:
        """Other quotas for its account, from now on; a token that is out under a higher limit is recalled."""
        self._check_now(now_s)
        check_quota(request=request, limit=limit)
        one = self._client(client)
        self._now_s = now_s
        lowered = limit < one.account.limit
        one.account.resize(request=request, limit=limit, now_s=now_s)
        for holder in self._holding.values():
            if lowered and holder.account is one.account and holder.token is not None:
                holder.token.cut = True

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
            one.account.add_waiting(1, now_s)
            one.asked_s = now_s
            self._waiting[client] = one

    def give_back(self, client: str, now_s: float, *, used_s: float) -> None:
        """Its token ends; `used_s` of device time is booked, at most the time it was held."""
        self._check_now(now_s)
        check_seconds("used_s", used_s)
        one = self._client(client)
        if one.token is None:
            raise TokenRuleError(f"{client} holds no token")
        self._now_s = now_s
        self._end(one, one.token, now_s, used_s=min(used_s, now_s - one.token.granted_s))

    # What is to be done

    def decide(self, now_s: float) -> Decision:
        """What to do now. Its grants, recalls and losses are in force: they are to be carried out."""
        self._check_now(now_s)
        self._now_s = now_s
        lost = self._take_away(now_s)
        ready, opens_s = self._ready(now_s)
        recalls: list[str] = []
        grants: list[Grant] = []
        if ready:
            holders = [one for one in self._holding.values() if one.token is not None and not one.token.recalled]
            chosen = choose((*ready, *holders), now_s, units=self._units, admission=self._admission)
            recalls = self._recall([one for one in holders if one not in chosen], now_s)
            grants = self._grant([one for one in chosen if one.token is None], now_s)
        recalls += self._recall(self._overdue(now_s), now_s)
        wake_s = min(opens_s, self._next_change_s(ready, now_s))
        return Decision(tuple(grants), tuple(recalls), lost, wake_s)

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
        return tuple(one.view(now_s) for one in self._clients.values())

    @property
    def tokens_out(self) -> int:
        return len(self._holding)

    # The parts of a decision

    def _take_away(self, now_s: float) -> tuple[str, ...]:
        lost = []
        for one in list(self._holding.values()):
            if one.token is not None and self._taken_at_s(one.token) <= now_s:
                self._end(one, one.token, now_s, used_s=now_s - one.token.granted_s)
                one.lost += 1
                lost.append(one.name)
        return tuple(lost)

    def _ready(self, now_s: float) -> tuple[list[Client], float]:
        """Waiting clients whose wall is open, one an account, and when the next wall opens."""
        first: dict[int, Client] = {}
        opens_s = math.inf
        for one in self._waiting.values():
            if one.account.running:
                continue
            at_s = one.account.wall.opens_at_s(now_s, one.block_s)
            if at_s > now_s + _ROUNDING_S:
                opens_s = min(opens_s, at_s)
                continue
            other = first.setdefault(id(one.account), one)
            if (one.asked_s, one.order) < (other.asked_s, other.order):
                first[id(one.account)] = one
        return list(first.values()), opens_s

    def _recall(self, holders: list[Client], now_s: float) -> list[str]:
        for one in holders:
            if one.token is not None:
                one.token.recall(now_s)
        return [one.name for one in holders]

    def _grant(self, chosen: list[Client], now_s: float) -> list[Grant]:
        """Tokens for those of the chosen for whom there is room already; the others wait for the recalled ones."""
        rows = sum(one.rows for one in self._holding.values()) if self._admission is Admission.EXCLUSIVE else 0
        width = sum(one.width for one in self._holding.values())
        grants = []
        for one in chosen:
            if fits(one, rows, width, units=self._units, admission=self._admission):
                rows |= one.rows
                width += one.width
                grants.append(self._give(one, now_s))
        return grants

    def _give(self, one: Client, now_s: float) -> Grant:
        slice_s = one.account.wall.slice_s(now_s)
        self._stop_waiting(one, now_s)
        if one.account.standing(now_s) >= CLAIM - _ROUNDING_S:
            for account in self._accounts.values():
                account.forgive(now_s)
        one.account.start(now_s)
        stop_s = now_s + slice_s
        one.token = Token(now_s, stop_s, stop_s + 2 * one.block_s, one.block_s)
        self._holding[one.name] = one
        return Grant(one.name, slice_s, one.token.deadline_s, math.isinf(slice_s) and self._alone(one))

    def _overdue(self, now_s: float) -> list[Client]:
        """Holders whose quota was lowered, or whose account's other member has waited for its turn."""
        turns = self._turns()
        return [
            one
            for one in self._holding.values()
            if one.token is not None
            and not one.token.recalled
            and (one.token.cut or turns.get(id(one.account), math.inf) <= now_s + _ROUNDING_S)
        ]

    def _next_change_s(self, ready: list[Client], now_s: float) -> float:
        """When the next token is taken away, a waiting client overtakes a holder, or a turn within an account ends."""
        times = [self._taken_at_s(one.token) for one in self._holding.values() if one.token is not None]
        times += [at_s for at_s in self._turns().values() if at_s > now_s]
        holders = [one for one in self._holding.values() if one.token is not None and not one.token.recalled]
        for one in ready:
            if one.token is None:
                times += [next_look_s(one.account, other.account, now_s) for other in self._rivals(one, holders)]
        return min(times, default=math.inf)

    def _rivals(self, one: Client, holders: list[Client]) -> Iterator[Client]:
        for other in holders:
            if self._admission is Admission.SUM or other.rows & one.rows:
                yield other

    def _turns(self) -> dict[int, float]:
        """Of accounts whose token is out and wanted by another member: when the turn ends; one turn is request × W."""
        wanted = {id(one.account) for one in self._waiting.values() if one.account.running}
        return {
            id(one.account): one.token.granted_s + one.account.request * self._window_s
            for one in self._holding.values()
            if one.token is not None and not one.token.recalled and id(one.account) in wanted
        }

    # Bookkeeping

    def _end(self, one: Client, token: Token, now_s: float, *, used_s: float) -> None:
        due_s = max(0.0, token.stop_s - token.granted_s) + token.block_s
        one.account.stop(now_s, used_s=used_s, due_s=due_s)
        one.used_s += used_s
        one.overuse_s += token.overuse_s(used_s, now_s)
        one.token = None
        del self._holding[one.name]

    def _stop_waiting(self, one: Client, now_s: float) -> None:
        one.account.add_waiting(-1, now_s)
        one.asked_s = math.inf
        del self._waiting[one.name]

    def _taken_at_s(self, token: Token) -> float:
        return token.deadline_s + _GRACE * self._window_s

    def _alone(self, one: Client) -> bool:
        """Whether nobody who has joined could ever want what it holds."""
        if self._admission is Admission.SUM:
            return sum(self._owners) <= self._units
        return all(self._owners[unit] == 1 for unit in one.units)

    def _count(self, units: tuple[int, ...], change: int) -> None:
        for unit in units:
            self._owners[unit] += change

    def _client(self, client: str) -> Client:
        one = self._clients.get(client)
        if one is None:
            raise TokenRuleError(f"{client} has not joined")
        return one

    def _check_now(self, now_s: float) -> None:
        if not self._now_s <= now_s < math.inf:
            raise TokenRuleError(f"now_s {now_s}: time goes on from {self._now_s}")
