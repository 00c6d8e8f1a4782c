"""Messages between the node agent and a device's token scheduler, framed as `gshare.wire` has it.

The scheduler's admin socket is apart from the replicas': only the agent has it. One request, one reply, in order.
"""

from __future__ import annotations

import msgspec
from gshare.wire import Message

from gateway_plugin.ledger import Entry as Entry
from gateway_plugin.ledger import Ledger as Ledger


class SetUp(Message, frozen=True):
    """First of all, once: which device this is. Repeating it with the same values does nothing."""

    device: str
    units: int
    exclusive: bool
    """No unit under two tokens at once (cpu); else units of live tokens summed stay within `units` (cuda)."""
    window_s: float


class Register(Message, frozen=True):
    """A replica that may ask for tokens, and where it will ask. A known one gets its quotas changed instead."""

    replica: str
    function: str
    credential: str
    socket: str
    """Path to listen on; only this replica is given it."""
    units: tuple[int, ...]
    request: float
    limit: float
    account: str = ""
    """Replicas of the same account share one quota: a replacement and its predecessor."""
    used_s: float = 0.0
    """Device time of the replica that is known from an earlier scheduler."""


class Resize(Message, frozen=True):
    """New quotas of a replica, in force when this is answered."""

    replica: str
    request: float
    limit: float


class Unregister(Message, frozen=True):
    """The replica has ended."""

    replica: str


class AskLedger(Message, frozen=True):
    """Answered by Ledger."""


class Yes(Message, frozen=True):
    """It is done."""


class Refusal(Message, frozen=True):
    """It is not done, and why."""

    reason: str


Admin = SetUp | Register | Resize | Unregister | AskLedger
Answer = Yes | Refusal | Ledger
ADMIN: msgspec.json.Decoder[Admin] = msgspec.json.Decoder(Admin)
ANSWER: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)
