"""Messages of `supervisor.sock`, framed as `gshare.wire` has it."""

from __future__ import annotations

import msgspec
from gshare.wire import Message


class Offer(Message, frozen=True):
    """Child → supervisor, with one descriptor attached: this is the listener of process `name`."""

    name: str


class AskStatus(Message, frozen=True):
    """Answered by Processes."""


class AskStop(Message, frozen=True):
    """Stop everything; answered by Processes when the rest is down, just before the supervisor itself ends."""


class ProcessStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One supervised process."""

    name: str
    state: str
    """`running`, `waiting` (for its next start) or `stopped`."""
    pid: int = 0
    uptime_s: float = 0.0
    restarts: int = 0
    adopted: bool = False
    """Started by an earlier supervisor."""
    last_exit: str = ""
    """How it ended last, e.g. `killed by signal 9`."""


class Processes(Message, frozen=True):
    processes: tuple[ProcessStatus, ...]
    settings: dict[str, str] = msgspec.field(default_factory=dict)
    """The environment form of the settings in force."""


Request = Offer | AskStatus | AskStop
