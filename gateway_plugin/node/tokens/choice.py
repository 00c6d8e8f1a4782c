"""Who should run together, of those that hold tokens and those that wait. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gateway_plugin.node.tokens.claims import Claim
from gateway_plugin.node.tokens.clients import Client
from gateway_plugin.node.tokens.shares import Admission


class Room:
    """The units of a device, as they are filled."""

    __slots__ = ("_admission", "_rows", "_units", "_width")

    def __init__(self, *, units: int, admission: Admission, taken: Iterable[Client] = ()) -> None:
        self._units = units
        self._admission = admission
        self._rows = 0
        self._width = 0
        for client in taken:
            self.fill(client)

    def is_clear(self, client: Client) -> bool:
        """Whether nobody is on its rows."""
        return not self._rows & client.rows

    def admits(self, client: Client) -> bool:
        """Whether it may run beside those that are here."""
        if self._admission is Admission.EXCLUSIVE:
            return self.is_clear(client)
        return self._width + client.width <= self._units

    def fill(self, client: Client) -> None:
        self._rows |= client.rows
        self._width += client.width


def choose(claims: Iterable[Claim], room: Room) -> list[Claim]:
    """Those of the claims (of different accounts) that should run together in the empty room, the first ones first.

    Two passes. First those with a claim above zero, none on another's rows: so the guarantees follow the rectangles,
    for which there is a way to meet them all. Then whoever fits besides by the rule of admission.
    """
    chosen: list[Claim] = []
    rest: list[Claim] = []
    for one in sorted(claims, key=_place):
        if one.weight > 0 and room.is_clear(one.client):
            room.fill(one.client)
            chosen.append(one)
        else:
            rest.append(one)
    for one in rest:
        if room.admits(one.client):
            room.fill(one.client)
            chosen.append(one)
    return chosen


def _place(one: Claim) -> tuple[float, bool, float, float, int]:
    return one.place
