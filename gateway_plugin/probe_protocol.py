"""Messages between a probe process and whoever started it: lines of JSON on its standard input and output.

One request, one answer, in order. Times are the machine's monotonic clock, so that probes can be told to run together.
"""

from __future__ import annotations

import msgspec
from gshare.wire import Message


class Prepare(Message, frozen=True):
    """First of all, once: how to compute. Answered by Prepared."""

    token_socket: str
    """Where it asks for tokens; only this probe is given it."""
    credential: str
    request: float
    """Guaranteed fraction of the time: what it keeps to should the scheduler go away."""
    threads: int
    cuda: bool


class Calibrate(Message, frozen=True):
    """Find out how much work takes this long on a device that is free. Answered by Calibrated."""

    block_s: float


class Run(Message, frozen=True):
    """Compute block after block as fast as it may. Answered by Ran, once it is over."""

    repeats: int
    """How much work a block is; see Calibrated."""
    gated: bool
    """False: without asking for tokens."""
    begin_s: float
    count_s: float
    """Completions count from then on; before that it is only under way."""
    end_s: float
    slice_s: float = 1.0
    """Length of the parts of the time for which completions are told one by one."""
    pause_s: float = 0.0
    """Rest after each block, with nothing to do: a load too light to be held back."""


class Prepared(Message, frozen=True):
    """It can compute, and the scheduler knows it."""


class Calibrated(Message, frozen=True):
    """`repeats` of the work take `block_s`."""

    repeats: int
    block_s: float


class Ran(Message, frozen=True):
    """What it did from `count_s` to `end_s`. Times are its own word."""

    completed: int
    """Blocks that ended in that time."""
    by_slice: tuple[int, ...]
    span_s: float
    """From the last end of a block before `count_s` (or from `count_s` on) to the last end that counts."""
    cpu_s: float
    """CPU time of the whole process in that span, by the kernel's account."""
    used_s: float
    """Device time in that span; so are the next two."""
    waited_s: float
    """With a block at hand and no token."""
    wanted_s: float
    """With a block at hand, computing or waiting; the rest of the time there was nothing to do."""
    tokens: int
    longest_block_s: float
    """Of those that count, its turn once come."""
    gating: str
    """What held it to its share at the end; see `gshare.turn.Gating`."""
    reason: str
    """Why it was not a scheduler's tokens; empty if it was."""


class Unable(Message, frozen=True):
    """What was asked cannot be done, and why."""

    reason: str


ProbeRequest = Prepare | Calibrate | Run
ProbeAnswer = Prepared | Calibrated | Ran | Unable
PROBE_REQUEST: msgspec.json.Decoder[ProbeRequest] = msgspec.json.Decoder(ProbeRequest)
PROBE_ANSWER: msgspec.json.Decoder[ProbeAnswer] = msgspec.json.Decoder(ProbeAnswer)
