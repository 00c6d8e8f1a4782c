"""A real worker on a real port, with a real Redis and replicas written by the test, all in the test's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway_plugin.dataplane.plane import HEAD_TIMEOUT_S
from gateway_plugin.dataplane.worker import Worker
from gateway_plugin.model import FunctionRoutes, Route, RouteTable
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store
from tests.unit.dataplane.talk import Message, ok, read_answer, read_request

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]
STREAM_LIMIT_BYTES = 1024 * 1024


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something that another task or process does has happened."""
    while not condition():
        await asyncio.sleep(0.001)


class Replica:
    """An HTTP server on a unix socket. By default it records requests and echoes their bodies."""

    def __init__(self, path: Path, handler: Handler | None = None) -> None:
        self.path = path
        self.requests: list[Message] = []
        self.connections = 0
        self.open = 0
        self._handler = handler or self.echo
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, listener: socket.socket | None = None) -> None:
        """Listen at the path, or take over a socket that listens there already."""
        if listener is None:
            self._server = await asyncio.start_unix_server(self.serve, self.path, limit=STREAM_LIMIT_BYTES)
        else:
            self._server = await asyncio.start_unix_server(self.serve, sock=listener, limit=STREAM_LIMIT_BYTES)

    async def stop(self) -> None:
        """Like a killed process: the listener and every connection are closed, the socket's file stays."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._handler(reader, writer)
        finally:
            self._tasks.discard(task)
            self.open -= 1
            writer.transport.abort()

    async def echo(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            self.requests.append(request)
            writer.write(ok(b"" if request.start.startswith("HEAD") else request.body))


class Gate:
    """A handler that takes requests and answers none of them until it is opened."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0
        self.opened = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            self.waiting += 1
            self.most = max(self.most, self.waiting)
            await self.opened.wait()
            self.waiting -= 1
            writer.write(ok(request.body))


@dataclass(slots=True)
class Stand:
    """The parts of one scenario."""

    worker: Worker
    store: Store
    settings: Settings
    port: int
    redis: Any
    _stack: contextlib.AsyncExitStack
    _slots: int = 0

    @property
    def run(self) -> Path:
        return Paths(self.settings.home).run

    async def replica(
        self, handler: Handler | None = None, *, path: Path | None = None, listener: socket.socket | None = None
    ) -> Replica:
        """A replica that listens."""
        self._slots += 1
        replica = Replica(path or self.run / f"r{self._slots}.sock", handler)
        await replica.start(listener)
        self._stack.push_async_callback(replica.stop)
        return replica

    async def control(self, handler: Handler | None = None, *, listener: socket.socket | None = None) -> Replica:
        """A control API that listens."""
        return await self.replica(handler, path=Paths(self.settings.home).control_socket, listener=listener)

    def route(self, path: Path, *, slot: int = 1, most: int = 16) -> Route:
        return Route(f"replica-{slot}", slot, f"unix:{path}", most)

    async def publish(self, **functions: FunctionRoutes) -> None:
        """Publish a routing table of functions in the default namespace and wait until it is in force."""
        named = {f"{name}.openfaas-fn": routes for name, routes in functions.items()}
        table = RouteTable(version=self.store.next_routes_version(), functions=named)
        self.store.publish_routes(table)
        await until(lambda: self.worker.plane.registry.version == table.version)

    async def serve(self, *handlers: Handler | None, most: int = 16) -> list[Replica]:
        """Function `echo` with a replica for each handler."""
        replicas = [await self.replica(handler) for handler in handlers or (None,)]
        routes = tuple(self.route(r.path, slot=slot, most=most) for slot, r in enumerate(replicas, start=1))
        await self.publish(echo=FunctionRoutes(replicas=routes))
        return replicas

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=STREAM_LIMIT_BYTES)
        self._stack.callback(lambda: writer.transport.abort())  # the writer itself, which must outlive the scenario
        return reader, writer

    async def ask(self, request: bytes, *, to_head: bool = False) -> Message:
        """One request on a connection of its own, and its answer."""
        reader, writer = await self.connect()
        writer.write(request)
        answer = await read_answer(reader, to_head=to_head)
        writer.transport.abort()
        return answer

    def in_flight(self, slot: int = 1) -> int:
        return self.worker.counters.in_flight(slot)

    def waiting(self, name: bytes = b"echo") -> int:
        function = self.worker.plane.registry.find(name)
        return 0 if function is None else len(function.waiting)

    def outcome(self, name: str) -> int:
        return self.worker.plane.outcomes[name]


@contextlib.asynccontextmanager
async def standing(
    settings: Settings, *, redis: Any, number: int = 0, head_timeout_s: float = HEAD_TIMEOUT_S
) -> AsyncIterator[Stand]:
    """A worker that serves; everything is taken down at the end, and nothing may have leaked."""
    worker = Worker(settings, number=number, head_timeout_s=head_timeout_s)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    await worker.start(listener)
    try:
        async with contextlib.AsyncExitStack() as stack:
            yield Stand(worker, Store(settings.redis_url), settings, port, redis, stack)
        await until(lambda: not worker.plane.clients)
    finally:
        await worker.drain()
    assert worker.sound
    assert sum(worker.counters.in_flight(slot) for slot in range(1, 10)) == 0, "a request kept its place"
