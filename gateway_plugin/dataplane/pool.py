"""Kept-alive connections to one endpoint, and how new ones are made."""

from __future__ import annotations

import asyncio
import contextlib
import socket

from gateway_plugin.dataplane.upstream import Upstream

IDLE_S = 60.0
"""An idle connection is closed after this time: before the other side's 75 s, so that it never closes first."""
FRESH_S = 0.002
"""A connection used this recently is taken without asking the kernel: the event loop has just seen it alive."""
CONNECT_S = 5.0
"""A TCP connect that takes longer has failed; a unix socket's is immediate."""
UNIX_PREFIX = "unix:"


class IdleConnections:
    """Closes connections that nobody used for `idle_s`; one for all endpoints of a worker."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, idle_s: float = IDLE_S) -> None:
        self._loop = loop
        self._idle_s = idle_s
        self.endpoints: set[Endpoint] = set()
        self._sweep()

    def _sweep(self) -> None:
        kept_before_s = self._loop.time() - self._idle_s
        for endpoint in self.endpoints:
            endpoint.close_idle(kept_before_s)
        self._loop.call_later(self._idle_s / 4, self._sweep)


class Endpoint:
    """Where one server listens: `unix:PATH` or `HOST:PORT`. Keeps its idle connections, newest last."""

    def __init__(self, address: str, *, loop: asyncio.AbstractEventLoop, idle: IdleConnections) -> None:
        self.address = address
        self._loop = loop
        self._idle: list[Upstream] = []
        self._retired = False
        self._group = idle
        idle.endpoints.add(self)

    def take_idle(self) -> Upstream | None:
        """A kept connection that is open on both sides, if there is one."""
        now_s = self._loop.time()
        while self._idle:
            upstream = self._idle.pop()
            if now_s - upstream.idle_since_s < FRESH_S or upstream.alive():
                return upstream
            upstream.cut()
        return None

    def close_idle(self, kept_before_s: float) -> None:
        """Close what was kept before this time of the event loop's clock: the oldest come first."""
        while self._idle and self._idle[0].idle_since_s < kept_before_s:
            self._idle.pop(0).cut()

    async def connect(self) -> Upstream:
        """A new connection. Raises: OSError when nobody takes it."""
        sock = await self._open_socket()
        upstream = Upstream(self, sock)
        if sock.family == socket.AF_UNIX:
            await self._loop.create_unix_connection(lambda: upstream, sock=sock)
        else:
            await self._loop.create_connection(lambda: upstream, sock=sock)
        return upstream

    async def _open_socket(self) -> socket.socket:
        family, peer = _parse(self.address)
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            if family == socket.AF_UNIX:
                sock.connect(peer)  # at once, or an error: a unix socket's connect never is "in progress"
            else:
                async with asyncio.timeout(CONNECT_S):
                    await self._loop.sock_connect(sock, peer)
        except BaseException:
            sock.close()
            raise
        return sock

    def keep(self, upstream: Upstream) -> None:
        if self._retired:
            upstream.cut()
            return
        upstream.idle_since_s = self._loop.time()
        self._idle.append(upstream)

    def forget(self, upstream: Upstream) -> None:
        with contextlib.suppress(ValueError):
            self._idle.remove(upstream)

    def retire(self) -> None:
        """No new requests come: close what is idle, and later what becomes so."""
        self._retired = True
        self._group.endpoints.discard(self)
        while self._idle:
            self._idle.pop().cut()


def _parse(address: str) -> tuple[socket.AddressFamily, str | tuple[str, int]]:
    """Raises: OSError, as for any other address that cannot be connected to."""
    if address.startswith(UNIX_PREFIX):
        return socket.AF_UNIX, address.removeprefix(UNIX_PREFIX)
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise OSError(f"endpoint {address!r}: write unix:PATH or HOST:PORT")
    return (socket.AF_INET6 if ":" in host else socket.AF_INET), (host.strip("[]"), int(port))
