"""Replicas as local processes, through the node agent's admin socket."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from gshare.wire import Channel, LiveConfig, Message, WireError, connect

from gateway_plugin.agent_protocol import (
    AnswerT,
    AskLedgers,
    ConfigureReplica,
    Devices,
    Done,
    Ledgers,
    ListDevices,
    ListReplicas,
    Replicas,
    Reply,
    StartReplica,
    StopReplica,
    Subscribe,
    expected,
)
from gateway_plugin.errors import AgentUnavailable
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device, ReplicaSpec, ReplicaStatus

ANSWER_TIMEOUT_S = 10.0
RECONNECT_S = 0.1


class ProcessBackend:
    """`backend.Backend` over the agent. One connection, used by one thread at a time."""

    def __init__(self, agent_socket: Path) -> None:
        self._path = str(agent_socket)
        self._channel: Channel[Reply] | None = None
        self._lock = threading.Lock()

    def devices(self) -> tuple[Device, ...]:
        return self._ask(ListDevices(), Devices).devices

    def replicas(self) -> tuple[ReplicaStatus, ...]:
        return self._ask(ListReplicas(), Replicas).replicas

    def ledgers(self) -> tuple[Ledger, ...]:
        return self._ask(AskLedgers(), Ledgers).ledgers

    def start(self, spec: ReplicaSpec, *, fence: int) -> None:
        self._ask(StartReplica(fence, spec), Done)

    def stop(self, replica_id: str, *, fence: int, grace_s: float) -> None:
        self._ask(StopReplica(fence, replica_id, grace_s), Done)

    def configure(self, replica_id: str, live: LiveConfig, *, fence: int, version: int) -> None:
        self._ask(ConfigureReplica(fence, replica_id, version, live), Done)

    def watch(self, on_change: Callable[[], None]) -> None:
        threading.Thread(target=self._listen, args=(on_change,), name="agent-events", daemon=True).start()

    def _ask(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        with self._lock:
            try:
                if self._channel is None:
                    self._channel = connect(self._path, Reply, timeout_s=ANSWER_TIMEOUT_S)
                self._channel.send(request)
                reply = self._channel.receive()
            except (OSError, WireError) as error:
                self._close()
                raise AgentUnavailable(f"node agent: {error}") from error
        return expected(reply, answer, to=request)

    def close(self) -> None:
        """Hang up; the next call connects again."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _listen(self, on_change: Callable[[], None]) -> None:
        while True:
            try:
                channel: Channel[Reply] = connect(self._path, Reply)
                with closing(channel):
                    channel.send(Subscribe())
                    while True:
                        channel.receive()
                        on_change()
            except (OSError, WireError):
                # The agent is away: it may come back with other replicas, so the loop looks again.
                on_change()
                time.sleep(RECONNECT_S)
