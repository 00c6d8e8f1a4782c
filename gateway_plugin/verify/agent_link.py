"""The agent, as `gshare verify` asks it: one connection, with which its probes end."""

from __future__ import annotations

import contextlib
from pathlib import Path

from gshare.wire import Channel, Message, WireError, connect

from gateway_plugin.agent_protocol import (
    AdmitProbe,
    Admitted,
    AnswerT,
    AskLedgers,
    Devices,
    Done,
    HoldProbe,
    Ledgers,
    ListDevices,
    Reply,
    expected,
)
from gateway_plugin.errors import AgentUnavailable, CannotVerify
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device

ANSWER_S = 15.0


class AgentLink(contextlib.AbstractContextManager["AgentLink"]):
    """Every call may raise AgentUnavailable or AgentRefused."""

    def __init__(self, socket: Path) -> None:
        """Raises: AgentUnavailable: nobody listens there."""
        try:
            self._channel: Channel[Reply] = connect(str(socket), Reply, timeout_s=ANSWER_S)
        except OSError as error:
            raise AgentUnavailable(
                f"no node agent answers at {socket}: {error.strerror}; start one with `gshare up`, or set GSHARE_HOME "
                "to where one runs"
            ) from error

    def __exit__(self, *_: object) -> None:
        self._channel.close()

    def devices(self) -> tuple[Device, ...]:
        return self._ask(ListDevices(), Devices).devices

    def ledgers(self) -> tuple[Ledger, ...]:
        return self._ask(AskLedgers(), Ledgers).ledgers

    def ledger(self, device: str) -> Ledger:
        """Of one device. Raises: CannotVerify when its scheduler has not said anything yet."""
        ledgers = {ledger.device: ledger for ledger in self.ledgers()}
        found = ledgers.get(device)
        if found is None:
            raise CannotVerify(f"--device {device!r}: no such device here; there is {', '.join(sorted(ledgers))}")
        if found.at_s == 0:
            raise CannotVerify(f"the token scheduler of {device} does not answer; `gshare logs` may say why")
        return found

    def admit(self, device: str, *, units: tuple[int, ...], quota: float) -> Admitted:
        return self._ask(AdmitProbe(device, units, request=quota, limit=quota), Admitted)

    def hold(self, probe: str, pid: int) -> None:
        self._ask(HoldProbe(probe, pid), Done)

    def _ask(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        try:
            self._channel.send(request)
            reply = self._channel.receive()
        except WireError as error:
            raise AgentUnavailable(f"the node agent went away: {error}; see `gshare status`, then try again") from error
        return expected(reply, answer, to=request)
