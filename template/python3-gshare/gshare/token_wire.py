"""Messages between a replica and its device's token scheduler, framed as `gshare.wire` has it.

A token is the right to use the replica's units of the device, from Grant to Return. Its number tells a token from the
one before it, so that a message that crosses another on the way does no harm.
"""

from __future__ import annotations

import msgspec

from gshare.wire import Message

TOKEN_PROTOCOL = 1
"""Version of this conversation. A scheduler speaks this one and the one before it."""


class TokenHello(Message, frozen=True):
    """Replica → scheduler, first frame."""

    credential: str
    used_s: float = 0.0
    """Device time that this process has used so far; a restarted scheduler learns it again from here."""
    protocol: int = TOKEN_PROTOCOL


class TokenWelcome(Message, frozen=True):
    """Scheduler → replica: accepted."""

    window_s: float
    protocol: int = TOKEN_PROTOCOL


class TokenRefused(Message, frozen=True):
    """Scheduler → replica: not accepted, and why."""

    reason: str


class Acquire(Message, frozen=True):
    """Replica → scheduler: there is work."""

    longest_block_s: float
    """Longest time from one gate point to the next, of late."""


class Return(Message, frozen=True):
    """Replica → scheduler: the token back, with the device time it was used for."""

    token: int
    used_s: float
    longest_block_s: float = 0.0
    again: bool = False
    """There is more work: this asks for the next token, too."""


class Grant(Message, frozen=True):
    """Scheduler → replica: go on until the first gate point after `slice_s`, or until Recall."""

    token: int
    slice_s: float
    alone: bool
    """Nobody else wants these units: keep the token between passes, until then."""


class Recall(Message, frozen=True):
    """Scheduler → replica: somebody waits; return the token at the next gate point, at once when idle."""

    token: int


class Lost(Message, frozen=True):
    """Scheduler → replica: the token's deadline has passed and it is somebody else's now."""

    token: int


class Ping(Message, frozen=True):
    """Replica → scheduler: are you there? Answered at once."""


class Pong(Message, frozen=True):
    """Scheduler → replica: I am."""


FromHolder = TokenHello | Acquire | Return | Ping
ToHolder = TokenWelcome | TokenRefused | Grant | Recall | Lost | Pong
FROM_HOLDER: msgspec.json.Decoder[FromHolder] = msgspec.json.Decoder(FromHolder)
TO_HOLDER: msgspec.json.Decoder[ToHolder] = msgspec.json.Decoder(ToHolder)
