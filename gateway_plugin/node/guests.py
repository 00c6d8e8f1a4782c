"""Probes on this node: they ask for tokens and are held to their units as replicas are, but serve nobody.

They live no longer than the admin connection that brought them, so whoever dies leaves none behind.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from gshare.share import Kind
from gshare.wire import LiveConfig

from gateway_plugin.agent_protocol import PROBE_FUNCTION, AdmitProbe, Admitted
from gateway_plugin.errors import AgentRefused
from gateway_plugin.model import Device, Place, ReplicaSpec
from gateway_plugin.node.schedulers import Scheduler
from gateway_plugin.node.spatial import SpaceOwner
from gateway_plugin.node.spawner import REPLICA_NICENESS
from gateway_plugin.node.tokens.shares import TokenShare, check_share
from gateway_plugin.paths import Paths
from gateway_plugin.processes import set_niceness

log = logging.getLogger(__name__)
MOST_GUESTS = 16
"""Of one connection."""


@dataclass(frozen=True, slots=True)
class House:
    """What guests are given a part of: devices, and the owners of their time and space, by the device's id."""

    paths: Paths
    devices: Mapping[str, Device]
    schedulers: Mapping[str, Scheduler]
    spaces: Mapping[str, SpaceOwner]


class Guests:
    """The probes of one admin connection. All methods run in the agent's event loop."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._specs: dict[str, ReplicaSpec] = {}

    async def admit(self, asked: AdmitProbe) -> Admitted:
        """From now on it may ask for tokens. Raises: AgentRefused: no such device, units or quotas, or too many."""
        device = self._checked(asked)
        space, scheduler = self._house.spaces[device.id], self._house.schedulers[device.id]
        await space.ready()
        spec = _spec_of(asked, device)
        credential = secrets.token_hex(16)
        self._house.paths.replica(spec.id).mkdir(mode=0o700)
        self._specs[spec.id] = spec
        await scheduler.register(spec, credential)
        log.info("%s: a probe on %s, units %s", spec.id, device.id, asked.units)
        return Admitted(
            id=spec.id,
            socket=str(scheduler.socket_of(spec.id)),
            credential=credential,
            env=space.environment(spec),
            window_s=scheduler.window_s,
            degraded=space.degraded,
        )

    def hold(self, probe: str, pid: int) -> None:
        """Hold its process to its units, at a replica's priority. Raises: AgentRefused."""
        spec = self._specs.get(probe)
        if spec is None:
            raise AgentRefused(f"no probe {probe} on this connection")
        space = self._space(spec)
        try:
            set_niceness(pid, REPLICA_NICENESS)
            space.own(spec, pid, degraded=space.degraded)
        except OSError as error:
            raise AgentRefused(f"{probe}: process {pid} cannot be held to its units: {error}") from error

    async def leave(self) -> None:
        """The connection has ended, and with it all its probes."""
        for spec in self._specs.values():
            assert spec.place is not None
            await self._house.schedulers[spec.place.device].unregister(spec.id)
            self._space(spec).release(spec.id, asked=True)
            with contextlib.suppress(OSError):
                shutil.rmtree(self._house.paths.replica(spec.id))
        self._specs.clear()

    def _checked(self, asked: AdmitProbe) -> Device:
        device = self._house.devices.get(asked.device)
        if device is None:
            raise AgentRefused(f"no device {asked.device} here; there is {', '.join(sorted(self._house.devices))}")
        if len(self._specs) >= MOST_GUESTS:
            raise AgentRefused(f"{len(self._specs)} probes are here already; at most {MOST_GUESTS} at once")
        try:
            check_share(TokenShare(asked.units, asked.request, asked.limit), units=device.units)
        except ValueError as error:
            raise AgentRefused(f"probe on {device.id}: {error}") from error
        return device

    def _space(self, spec: ReplicaSpec) -> SpaceOwner:
        assert spec.place is not None
        return self._house.spaces[spec.place.device]


def _spec_of(asked: AdmitProbe, device: Device) -> ReplicaSpec:
    """A replica that nobody routes to: what owners of time and space go by."""
    return ReplicaSpec(
        id=f"probe-{secrets.token_hex(4)}",
        function=PROBE_FUNCTION,
        revision="",
        code_digest="",
        slot=0,
        kind=Kind.PINNED,
        sm_partition=max(1, 100 * len(asked.units) // device.units),
        place=Place(device.id, asked.units),
        live=LiveConfig(quota_request=asked.request, quota_limit=asked.limit),
    )
