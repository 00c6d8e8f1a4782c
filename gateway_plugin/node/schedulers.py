"""Time on a device, the agent's side: keeps the device's token scheduler running and tells it who may ask.

What the scheduler has to know is kept here, so that one that was restarted is told everything again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from gshare.wire import WireError, encode

from gateway_plugin.model import Device, ReplicaSpec
from gateway_plugin.node.streams import messages
from gateway_plugin.node.tokens.protocol import (
    ANSWER,
    Answer,
    AskLedger,
    Ledger,
    Refusal,
    Register,
    Resize,
    SetUp,
    Unregister,
)
from gateway_plugin.paths import TOKENS, Paths
from gateway_plugin.processes import python_command
from gateway_plugin.settings import Settings
from gateway_plugin.supervisor.child import Child, ChildSpec

log = logging.getLogger(__name__)
RETRY_S = 0.02
POLL_S = 1.0
ANSWER_S = 5.0
"""Longest time for an answer; a scheduler that takes longer is stuck."""
HEARTBEAT_LIMIT_S = 5.0
CPU_WINDOW_S = 0.2
CUDA_WINDOW_S = 0.04


class Scheduler:
    """The token scheduler of one device. All methods run in the agent's event loop."""

    def __init__(self, device: Device, number: int, *, paths: Paths, settings: Settings) -> None:
        self._device, self._paths = device, paths
        self._socket = paths.tokens_socket(number)
        spec = ChildSpec(
            name=f"{TOKENS}{number}",
            argv=tuple(python_command("process", f"{TOKENS}{number}")),
            heartbeat_limit_s=HEARTBEAT_LIMIT_S,
        )
        self._child = Child(spec, paths=paths, env=os.environ | settings.to_env(), backoff_max_s=settings.backoff_max_s)
        window_s = settings.token_window_s or (CPU_WINDOW_S if device.cores else CUDA_WINDOW_S)
        self._set_up = SetUp(device.id, device.units, exclusive=bool(device.cores), window_s=window_s)
        self._known: dict[str, Register] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._answers: asyncio.Queue[Answer] = asyncio.Queue()
        self._asking = asyncio.Lock()
        self._ready = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.ledger = Ledger(device=device.id, at_s=0.0, span_s=0.0, entries=(), functions={})
        """As it was a moment ago."""

    def open(self) -> None:
        """Start it, or adopt the one that an earlier agent left."""
        self._child.begin()
        self._tasks = [asyncio.create_task(self._keep_connected()), asyncio.create_task(self._poll())]

    async def close(self) -> None:
        """Stop it. No replica runs any more."""
        for task in self._tasks:
            task.cancel()
        await self._child.stop()

    @property
    def window_s(self) -> float:
        """Time over which shares are kept."""
        return self._set_up.window_s

    def socket_of(self, replica_id: str) -> Path:
        """Where a replica asks for its tokens."""
        return self._paths.replica_tokens(replica_id)

    async def register(self, spec: ReplicaSpec, credential: str, *, whole: bool = False) -> None:
        """From now on the replica may ask. Returns once the scheduler knows it, or will as soon as it is back.

        `whole`: nothing holds it to its units, so its token is one for all of them.
        """
        assert spec.place is not None
        predecessor = self._known.get(spec.replaces)
        asked = Register(
            replica=spec.id,
            function=spec.function,
            credential=credential,
            socket=str(self.socket_of(spec.id)),
            units=tuple(range(self._device.units)) if whole else spec.place.units,
            request=spec.live.quota_request,
            limit=spec.live.quota_limit,
            account=(predecessor.account or predecessor.replica) if predecessor else "",
        )
        self._known[spec.id] = asked
        await self._tell(asked)

    async def resize(self, replica_id: str, *, request: float, limit: float) -> None:
        """New quotas; returns when they are in force."""
        known = self._known.get(replica_id)
        if known is None:
            return
        self._known[replica_id] = msgspec.structs.replace(known, request=request, limit=limit)
        await self._ready.wait()
        await self._tell(Resize(replica_id, request, limit))

    async def unregister(self, replica_id: str) -> None:
        if self._known.pop(replica_id, None) is not None:
            await self._tell(Unregister(replica_id))

    async def read_ledger(self) -> Ledger:
        """As it is now; the last one known while the scheduler is away."""
        if self._ready.is_set():
            with contextlib.suppress(WireError):
                answer = await self._ask(AskLedger())
                if isinstance(answer, Ledger):
                    self.ledger = answer
        return self.ledger

    async def _tell(self, request: msgspec.Struct) -> None:
        """Say it if there is a connection; if not, it will be told all that is known when it comes."""
        if self._ready.is_set():
            with contextlib.suppress(WireError):
                await self._say(request)

    async def _ask(self, request: msgspec.Struct) -> Answer:
        """Raises: WireError: it is gone or stuck."""
        async with self._asking:
            if self._writer is None:
                raise WireError("not connected")
            self._writer.write(encode(request))
            try:
                return await asyncio.wait_for(self._answers.get(), ANSWER_S)
            except TimeoutError as error:
                self._writer.close()
                raise WireError("it does not answer") from error

    async def _keep_connected(self) -> None:
        while True:
            try:
                reader, self._writer = await asyncio.open_unix_connection(str(self._socket))
            except OSError:
                await asyncio.sleep(RETRY_S)
                continue
            self._answers = asyncio.Queue()
            receiving = asyncio.create_task(self._receive(reader))
            try:
                await self._introduce()
                await receiving
            except (WireError, OSError) as error:
                log.warning("%s: scheduler: %s", self._device.id, error)
            finally:
                self._ready.clear()
                receiving.cancel()
                self._writer.close()
                self._writer = None
            await asyncio.sleep(RETRY_S)

    async def _introduce(self) -> None:
        """Tell it all that is known, also what changes meanwhile, and nothing is awaited after the last look.

        What an earlier agent had registered and has ended since is unregistered.
        """
        await self._say(self._set_up)
        found = await self._ask(AskLedger())
        left = {entry.replica for entry in found.entries} if isinstance(found, Ledger) else set()
        used_s = {entry.replica: entry.used_s for entry in self.ledger.entries}
        told: set[str] = set()
        while True:
            fresh = [
                msgspec.structs.replace(asked, used_s=used_s.get(asked.replica, 0.0))
                for asked in self._known.values()
                if asked.replica not in told
            ]
            stale = (left | told) - self._known.keys()
            if not fresh and not stale:
                self._ready.set()
                return
            for request in (*fresh, *(Unregister(replica) for replica in sorted(stale))):
                await self._say(request)
            told = (told | {asked.replica for asked in fresh}) - stale
            left = set()

    async def _say(self, request: msgspec.Struct) -> None:
        """Raises: WireError: it is gone or stuck."""
        answer = await self._ask(request)
        if isinstance(answer, Refusal):
            log.error("%s: scheduler: %s", self._device.id, answer.reason)

    async def _receive(self, reader: asyncio.StreamReader) -> None:
        async for answer in messages(reader, ANSWER):
            self._answers.put_nowait(answer)

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            self._child.check_heartbeat()
            await self.read_ledger()


def schedulers_of(devices: Iterable[Device], *, paths: Paths, settings: Settings) -> Mapping[str, Scheduler]:
    """One a device, by its id."""
    return {
        device.id: Scheduler(device, number, paths=paths, settings=settings) for number, device in enumerate(devices)
    }
