"""Who has joined, who waits and who holds a token: the state that the rule decides on, and every change of it. Pure."""

from __future__ import annotations

import math

from gateway_plugin.node.tokens.accounts import CLAIM, Account
from gateway_plugin.node.tokens.clients import Client, Token
from gateway_plugin.node.tokens.shares import Admission, TokenShare

_ROUNDING = 1e-9


class Roster:
    """The clients of one device. What it is told has been checked."""

    def __init__(self, *, units: int, admission: Admission, window_s: float) -> None:
        self.units = units
        self.admission = admission
        self.window_s = window_s
        self.clients: dict[str, Client] = {}
        self.waiting: dict[str, Client] = {}
        self.tokens: dict[str, Token] = {}
        """Those that are out, by holder; the oldest first."""
        self._accounts: dict[str, Account] = {}
        self._owners = [0] * units
        self._joined = 0

    def join(self, name: str, share: TokenShare, now_s: float, *, account: str) -> None:
        """A client more; the quotas of its share are from now on those of its account."""
        shared = self._accounts.get(account)
        if shared is None:
            shared = Account(request=share.request, limit=share.limit, window_s=self.window_s, now_s=now_s)
            self._accounts[account] = shared
        shared.members += 1
        self._joined += 1
        rows = sum(1 << unit for unit in share.units)
        self.clients[name] = Client(name, self._joined, share.units, rows, account, shared)
        self._count(share.units, 1)
        self.resize(shared, request=share.request, limit=share.limit, now_s=now_s)

    def leave(self, one: Client) -> None:
        """A client less; it neither waits nor holds a token."""
        del self.clients[one.name]
        self._count(one.units, -1)
        one.account.members -= 1
        if not one.account.members:
            del self._accounts[one.account_name]

    def resize(self, account: Account, *, request: float, limit: float, now_s: float) -> None:
        """Other quotas; a token that is out under a higher limit is to be recalled."""
        if limit < account.limit:
            for token in self.tokens.values():
                if token.holder.account is account:
                    token.cut = True
        account.resize(request=request, limit=limit, now_s=now_s)

    def wait(self, one: Client, now_s: float) -> None:
        """It waits from now on."""
        one.account.add_waiting(1, now_s)
        one.asked_s = now_s
        self.waiting[one.name] = one

    def stop_waiting(self, one: Client, now_s: float) -> None:
        one.account.add_waiting(-1, now_s)
        one.asked_s = math.inf
        del self.waiting[one.name]

    def start(self, one: Client, now_s: float) -> Token:
        """A waiting client gets a token, for as long as its wall allows."""
        if one.account.standing(now_s) >= CLAIM - _ROUNDING:
            for account in self._accounts.values():
                account.forgive(now_s)
        self.stop_waiting(one, now_s)
        stop_s = now_s + one.account.start(now_s)
        token = Token(one, now_s, stop_s, stop_s + 2 * one.block_s, one.block_s)
        one.token = self.tokens[one.name] = token
        return token

    def end(self, token: Token, now_s: float, *, used_s: float) -> None:
        """A token ends, and this use is booked."""
        one = token.holder
        due_s = max(0.0, token.stop_s - token.granted_s) + token.block_s
        one.account.stop(now_s, used_s=used_s, due_s=due_s)
        one.used_s += used_s
        one.overuse_s += token.overuse_s(used_s, now_s)
        one.token = None
        del self.tokens[one.name]

    def is_alone(self, one: Client) -> bool:
        """Whether nobody who has joined could ever want what it holds."""
        if self.admission is Admission.SUM:
            return sum(self._owners) <= self.units
        return all(self._owners[unit] == 1 for unit in one.units)

    def _count(self, units: tuple[int, ...], change: int) -> None:
        for unit in units:
            self._owners[unit] += change
