"""What the rule keeps of one client and of the token it holds. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gateway_plugin.node.tokens.accounts import Account
from gateway_plugin.node.tokens.shares import ClientView, TokenShare


@dataclass(slots=True)
class Token:
    """One that is out."""

    holder: Client
    granted_s: float
    stop_s: float
    """From when on its holder should stop at the next gate point: the slice's end, or a recall before it."""
    deadline_s: float
    block_s: float
    """The longest block that its holder reported."""
    recalled: bool = False
    cut: bool = False
    """The quota was lowered meanwhile, so it is to be recalled."""

    def recall(self, now_s: float) -> None:
        """From now on its holder has two longest blocks to return it."""
        self.recalled = True
        self.stop_s = min(self.stop_s, now_s)
        self.deadline_s = min(self.deadline_s, now_s + 2 * self.block_s)

    def overuse_s(self, used_s: float, now_s: float) -> float:
        """How much of its use lies after `stop_s`, all of its use taken to be the last part of the time held."""
        return max(0.0, min(used_s, now_s - self.stop_s))


@dataclass(slots=True)
class Client:
    """One that has joined."""

    name: str
    order: int
    """Of joining: the last of all tie-breaks."""
    units: tuple[int, ...]
    rows: int
    """Its units as bits."""
    account_name: str
    account: Account
    block_s: float = 0.0
    asked_s: float = math.inf
    """Since when it waits; inf: it does not."""
    opens_s: float = -math.inf
    """While it waits: from when on its wall lets it run, as of the last decision."""
    token: Token | None = None
    used_s: float = 0.0
    overuse_s: float = 0.0
    lost: int = 0

    @property
    def width(self) -> int:
        return len(self.units)

    @property
    def waiting(self) -> bool:
        return self.asked_s < math.inf

    def view(self, now_s: float) -> ClientView:
        return ClientView(
            client=self.name,
            account=self.account_name,
            share=TokenShare(self.units, self.account.request, self.account.limit),
            holding=self.token is not None,
            waiting_s=max(0.0, now_s - self.asked_s) if self.waiting else 0.0,
            used_s=self.used_s,
            window_use_s=self.account.wall.used_s(now_s),
            overuse_s=self.overuse_s,
            lost=self.lost,
        )
