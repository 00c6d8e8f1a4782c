"""Where a request can go, and the place it takes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gateway_plugin.dataplane.exchange import Exchange


class Destination(Protocol):
    """Where a request is to go. It ends up with `Exchange.bind` or `Exchange.refuse`."""

    hop: str
    """Its name in texts."""

    def submit(self, exchange: Exchange) -> None:
        """Find a connection for it, now or later."""

    def overdue(self, exchange: Exchange) -> None:
        """It has waited for as long as a request may; refuse it."""

    def withdraw(self, exchange: Exchange) -> None:
        """It is over; forget it wherever it waits."""


class Lease(Protocol):
    """A place taken at a replica."""

    hop: str

    def release(self) -> None:
        """Give it back; once, however often it is called."""
