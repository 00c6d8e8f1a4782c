"""The replica's side of the conversation with the node agent, in a thread of its own.

The connection belongs to the serving process alone: the agent takes its end for the replica's. Without the agent a
replica serves on with the settings it has, and keeps trying.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import StrEnum

from gshare.errors import GshareError
from gshare.wire import (
    Ack,
    Channel,
    Configure,
    Hello,
    LiveConfig,
    Refused,
    State,
    ToReplica,
    Welcome,
    WireError,
    connect,
)

log = logging.getLogger(__name__)

FIRST_RETRY_S = 0.05
LAST_RETRY_S = 2.0
REFUSED_RETRY_S = 10.0
HANDSHAKE_TIMEOUT_S = 10.0


class Managed(StrEnum):
    """Whether a node agent looks after this replica."""

    YES = "yes"
    NO = "no"
    """No agent was named at the start: plain `docker run`, or another provider."""
    DEGRADED = "degraded"
    """One was named and cannot be reached now."""


class NodeClient:
    """Connects, introduces itself, tells state, takes settings; again and again for as long as the process lives."""

    def __init__(
        self,
        socket_path: str,
        hello: Hello,
        *,
        state: Callable[[], State],
        configure: Callable[[LiveConfig, int], None],
    ) -> None:
        self._path = socket_path
        self._hello = hello
        self._state = state
        self._configure = configure
        self._channel: Channel[ToReplica] | None = None
        self._sending = threading.Lock()
        self._settled = threading.Event()
        self._stopped = threading.Event()
        self._reason = "not connected yet"
        self._thread = threading.Thread(target=self._run, name="gshare-node", daemon=True)

    @property
    def managed(self) -> Managed:
        return Managed.YES if self._channel is not None else Managed.DEGRADED

    @property
    def reason(self) -> str:
        """Why it is degraded; empty while connected."""
        return "" if self._channel is not None else self._reason

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Leave for good. The agent sees the connection end."""
        self._stopped.set()
        channel = self._channel
        if channel is not None:
            channel.shutdown()

    def wait_settled(self, timeout_s: float) -> bool:
        """Whether the agent gave its first answer, welcome or refusal, within that time."""
        return self._settled.wait(timeout_s)

    def tell_state(self) -> None:
        """Send the present state; a connection that is not there gets it when it comes back."""
        with self._sending:
            if self._channel is not None:
                self._send_state(self._channel)

    def _send_state(self, channel: Channel[ToReplica]) -> None:
        try:
            channel.send(self._state())
        except WireError as error:
            log.debug("state not sent: %s", error)

    def _run(self) -> None:
        retry_s = FIRST_RETRY_S
        while not self._stopped.is_set():
            try:
                channel: Channel[ToReplica] = connect(self._path, ToReplica, timeout_s=HANDSHAKE_TIMEOUT_S)
            except OSError as error:
                self._lost(f"{self._path}: {error.strerror or error}")
            else:
                retry_s = FIRST_RETRY_S if self._talk(channel) else REFUSED_RETRY_S
            self._stopped.wait(retry_s)
            retry_s = min(retry_s * 2, LAST_RETRY_S)

    def _talk(self, channel: Channel[ToReplica]) -> bool:
        """One connection from hello to its end; False if the agent refused it."""
        try:
            channel.send(self._hello)
            answer = channel.receive()
            if isinstance(answer, Welcome):
                self._welcomed(channel, answer)
                self._listen(channel)
            elif isinstance(answer, Refused):
                self._settled.set()
                self._lost(f"refused: {answer.reason}")
                return False
        except WireError as error:
            self._lost(str(error))
        finally:
            with self._sending:
                self._channel = None
            channel.close()
        return True

    def _welcomed(self, channel: Channel[ToReplica], welcome: Welcome) -> None:
        channel.set_timeout(None)
        error = self._apply(welcome.live, welcome.version)
        if error:
            log.warning("the agent's settings are not usable: %s", error)
        with self._sending:
            self._channel, self._reason = channel, ""
            self._send_state(channel)
        self._settled.set()
        log.info("connected to the node agent (protocol %d)", welcome.protocol)

    def _listen(self, channel: Channel[ToReplica]) -> None:
        while True:
            message = channel.receive()
            if isinstance(message, Configure):
                error = self._apply(message.live, message.version)
                with self._sending:
                    channel.send(Ack(version=message.version, error=error))

    def _apply(self, live: LiveConfig, version: int) -> str:
        try:
            self._configure(live, version)
        except GshareError as error:
            return str(error)
        return ""

    def _lost(self, reason: str) -> None:
        if reason != self._reason:
            log.warning("no node agent (%s); serving on, and trying again", reason)
        self._reason = reason
