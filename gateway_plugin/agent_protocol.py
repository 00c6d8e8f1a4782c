"""Messages of the agent's admin socket, framed as `gshare.wire` has it: one request, one reply, in order.

A connection that sends Subscribe gets an Event for every change of a replica, and nothing else.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from gshare.wire import LiveConfig, Message

from gateway_plugin.errors import AgentRefused
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device, ReplicaSpec, ReplicaStatus

AnswerT = TypeVar("AnswerT", bound=Message)
PROBE_FUNCTION = "verify.gshare-probe"
"""Under this name probes are in the ledger: they serve no function."""


class ListReplicas(Message, frozen=True):
    """Answered by Replicas."""


class ListDevices(Message, frozen=True):
    """Answered by Devices."""


class AskLedgers(Message, frozen=True):
    """Answered by Ledgers."""


class StartReplica(Message, frozen=True):
    """Run one more replica; answered by Done when its process exists (ready comes later, as an Event)."""

    fence: int
    spec: ReplicaSpec


class StopReplica(Message, frozen=True):
    """SIGTERM, then SIGKILL after `grace_s`; answered at once. Forgets replicas that are dead already."""

    fence: int
    id: str
    grace_s: float


class ConfigureReplica(Message, frozen=True):
    """New live settings; answered by Done when sent, acknowledged in the replica's status."""

    fence: int
    id: str
    version: int
    live: LiveConfig


class AdmitProbe(Message, frozen=True):
    """A probe that may ask for tokens of a device; answered by Admitted. It ends with this connection."""

    device: str
    units: tuple[int, ...]
    request: float
    limit: float


class HoldProbe(Message, frozen=True):
    """The probe's process, just started: hold it to its units as a replica; answered by Done."""

    id: str
    pid: int


class Subscribe(Message, frozen=True):
    """From here on, Events."""


class Replicas(Message, frozen=True):
    replicas: tuple[ReplicaStatus, ...]


class Devices(Message, frozen=True):
    devices: tuple[Device, ...]


class Ledgers(Message, frozen=True):
    """One a device; of a scheduler that is away, the last one known (see `Ledger.at_s`)."""

    ledgers: tuple[Ledger, ...]


class Admitted(Message, frozen=True, kw_only=True):
    """What a probe's process needs."""

    id: str
    """Its name in the ledger."""
    socket: str
    """Where it asks for tokens, with this credential."""
    credential: str
    env: dict[str, str]
    window_s: float
    """Time over which shares are kept."""
    degraded: str
    """Why it will not be held to its units; empty: it will."""


class Done(Message, frozen=True):
    """It was done."""


class No(Message, frozen=True):
    """It was not done, and why."""

    code: str
    reason: str


class Event(Message, frozen=True):
    """A replica changed: its new status; `gone` when the agent has forgotten it."""

    status: ReplicaStatus
    gone: bool = False


Request = (
    ListReplicas
    | ListDevices
    | AskLedgers
    | StartReplica
    | StopReplica
    | ConfigureReplica
    | AdmitProbe
    | HoldProbe
    | Subscribe
)
Reply = Replicas | Devices | Ledgers | Admitted | Done | No | Event
REQUEST: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)


def expected(reply: Reply, answer: type[AnswerT], *, to: Message) -> AnswerT:
    """The reply, of the kind that its request is answered by. Raises: AgentRefused: the agent said no."""
    if isinstance(reply, No):
        raise AgentRefused(reply.reason)
    assert isinstance(reply, answer), f"agent answered {type(reply).__name__} to {type(to).__name__}"
    return reply
