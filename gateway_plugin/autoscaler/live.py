"""Live settings of a replica that runs: which of those wanted it can be given now. Pure."""

from __future__ import annotations

from collections.abc import Collection

import msgspec
from gshare.wire import LiveConfig

from gateway_plugin.model import ReplicaStatus
from gateway_plugin.placement.first_fit import Occupant, raised


def grantable(
    wanted: LiveConfig, status: ReplicaStatus, occupants: list[Occupant], *, successors: Collection[str]
) -> tuple[LiveConfig, str]:
    """The settings to give it, and what is withheld, why; empty: nothing.

    A guarantee is raised only where it fits beside its neighbours, and then counted in `occupants`; all else always is.
    One in `successors` has lent its place and is counted with its successor.
    """
    place, now = status.spec.place, status.spec.live.quota_request
    if place is None or wanted.quota_request <= now or status.spec.id in successors:
        return wanted, ""
    extra = raised(place, by=wanted.quota_request - now, occupants=occupants)
    if isinstance(extra, Occupant):
        occupants.append(extra)
        return wanted, ""
    text = f"quota_request {wanted.quota_request:.2f}: {extra.reason}; it stays {now:.2f} until there is room"
    return msgspec.structs.replace(wanted, quota_request=now), text
