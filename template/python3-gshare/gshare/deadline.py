"""By when a call must have its answer: the function's exec_timeout, which a client's X-Timeout may shorten."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

from werkzeug.datastructures import Headers

from gshare.config import EXEC_TIMEOUT
from gshare.durations import parse_duration_s
from gshare.errors import BadInput, DeadlineExceeded

HEADER = "X-Timeout"
"""of-watchdog's header: it shortens the limit of one call and never lengthens it."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock, and where it comes from."""

    at_s: float
    limit_s: float
    """How long the call has in all."""
    origin: str
    """The setting or header that says so."""

    @classmethod
    def after(cls, limit_s: float, origin: str) -> Deadline:
        """`limit_s` from now."""
        return cls(time.monotonic() + limit_s, limit_s, origin)

    def remaining_s(self) -> float | None:
        """Seconds left, at least 0; None without a limit."""
        return None if math.isinf(self.at_s) else max(0.0, self.at_s - time.monotonic())

    def exceeded(self, what: str) -> DeadlineExceeded:
        """The error for a call whose time is over."""
        return DeadlineExceeded(f"{what} within {self.limit_s:g} s ({self.origin})")


NO_DEADLINE = Deadline(math.inf, math.inf, "no limit")


def call_deadline(headers: Headers, exec_timeout_s: float) -> Deadline:
    """The deadline of a call that begins now; an `exec_timeout_s` of 0 is no limit. Raises: BadInput."""
    limit_s = exec_timeout_s or math.inf
    text = headers.get(HEADER, "").strip()
    if text:
        asked_s = _asked_s(text)
        if asked_s < limit_s:
            return Deadline.after(asked_s, f"{HEADER}: {text}")
    return Deadline.after(limit_s, f"{EXEC_TIMEOUT}={limit_s:g}s") if exec_timeout_s else NO_DEADLINE


def _asked_s(text: str) -> float:
    try:
        seconds = parse_duration_s(text)
    except ValueError as error:
        raise BadInput(f"{HEADER}: {text[:80]!r}: write {error}") from error
    if seconds == 0:
        raise BadInput(f"{HEADER}: {text!r}: no call is answered in no time; write more than 0")
    return seconds
