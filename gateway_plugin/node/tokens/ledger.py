"""Who used the device for how long: booked at each return of a token."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

SPAN_S = 10.0
"""The measured share is that of the last so many seconds."""


@dataclass(slots=True)
class Account:
    """Totals of one replica."""

    function: str
    used_s: float = 0.0
    tokens: int = 0
    waited_s: float = 0.0
    overused_s: float = 0.0
    lost: int = 0
    joined_s: float = 0.0
    _recent: deque[tuple[float, float]] = field(default_factory=deque)

    def book(self, used_s: float, *, now_s: float) -> None:
        """Device time of a token that came back now."""
        self.used_s += used_s
        self._recent.append((now_s, used_s))
        self._forget(now_s)

    def share(self, now_s: float) -> float:
        """Fraction of the last SPAN_S that it used, by tokens that came back."""
        self._forget(now_s)
        span_s = min(SPAN_S, now_s - self.joined_s)
        return min(1.0, sum(used for _, used in self._recent) / span_s) if span_s > 0 else 0.0

    def _forget(self, now_s: float) -> None:
        while self._recent and self._recent[0][0] < now_s - SPAN_S:
            self._recent.popleft()


class Book:
    """The accounts of a device, and the totals of functions whose replicas have ended."""

    def __init__(self) -> None:
        self.accounts: dict[str, Account] = {}
        self._ended: dict[str, float] = {}

    def open(self, replica: str, function: str, *, used_s: float, now_s: float) -> Account:
        account = Account(function, used_s=used_s, joined_s=now_s)
        self.accounts[replica] = account
        return account

    def close(self, replica: str) -> None:
        account = self.accounts.pop(replica)
        self._ended[account.function] = self._ended.get(account.function, 0.0) + account.used_s

    def functions(self) -> dict[str, float]:
        """Device seconds in all, by function in order of name."""
        totals = dict(self._ended)
        for account in self.accounts.values():
            totals[account.function] = totals.get(account.function, 0.0) + account.used_s
        return dict(sorted(totals.items()))
