"""The token in a replica's hand, and what it has been told about it. No I/O; whoever shares it brings the lock."""

from __future__ import annotations

from dataclasses import dataclass

from gshare.token_wire import Grant, Lost, Recall


@dataclass(slots=True)
class Hold:
    """At most one token."""

    grant: Grant | None = None
    recalled: bool = False
    slice_end_s: float = 0.0

    def take(self, grant: Grant, now_s: float) -> None:
        self.grant, self.recalled = grant, False
        self.slice_end_s = now_s + grant.slice_s

    def let_go(self) -> Grant | None:
        """The token is not in hand any more; which it was."""
        held, self.grant = self.grant, None
        return held

    def usable(self, now_s: float) -> bool:
        """Whether a block may begin."""
        return self.grant is not None and not self.recalled and now_s < self.slice_end_s

    def to_return(self, now_s: float) -> bool:
        """Whether it must be given up as soon as nothing runs."""
        return self.grant is not None and not self.usable(now_s)

    def hear(self, message: object) -> None:
        """What the scheduler says of this token; of an earlier one it is nothing."""
        held = self.grant.token if self.grant else None
        match message:
            case Recall(token=token) if token == held:
                self.recalled = True
            case Lost(token=token) if token == held:
                self.grant = None
