"""The one Protocol behind which replicas run: as processes here, as containers or pods elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gshare.wire import LiveConfig

from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device, ReplicaSpec, ReplicaStatus


class Backend(Protocol):
    """Runs replicas. Every call may raise AgentUnavailable (try again later) or AgentRefused (with its reason)."""

    def devices(self) -> tuple[Device, ...]:
        """The devices replicas can be placed on."""

    def replicas(self) -> tuple[ReplicaStatus, ...]:
        """What runs now; the truth of it."""

    def ledgers(self) -> tuple[Ledger, ...]:
        """Who used which device for how long, one ledger a device."""

    def start(self, spec: ReplicaSpec, *, fence: int) -> None:
        """Begin to run one replica; returns before it is ready."""

    def stop(self, replica_id: str, *, fence: int, grace_s: float) -> None:
        """Stop one replica that gets no requests any more; returns at once."""

    def configure(self, replica_id: str, live: LiveConfig, *, fence: int, version: int) -> None:
        """Change the live settings of a running replica."""

    def watch(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` (from another thread) whenever a replica's state changes."""
