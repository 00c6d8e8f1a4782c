"""Connections to a replica are kept, looked at before they are used again, and closed when nobody uses them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from gateway_plugin.dataplane.pool import Endpoint, IdleConnections
from gateway_plugin.model import FunctionRoutes, Route
from tests.unit.dataplane.stand import Replica, Stand, until
from tests.unit.dataplane.talk import post

Play = Callable[..., None]


def _run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(asyncio.wait_for(scenario, 15))


def test_the_connection_kept_last_is_used_first_and_a_closed_one_never() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory(prefix="gs") as folder:
            replica = Replica(Path(folder) / "r.sock")
            await replica.start()
            endpoint = Endpoint(f"unix:{replica.path}", loop=loop, idle=IdleConnections(loop))
            older, newer = await endpoint.connect(), await endpoint.connect()
            endpoint.keep(older)
            endpoint.keep(newer)
            assert endpoint.take_idle() is newer
            endpoint.keep(newer)
            await until(lambda: replica.connections == 2)
            await replica.stop()
            await until(lambda: not older.alive() and not newer.alive())
            older.idle_since_s = newer.idle_since_s = 0.0
            assert endpoint.take_idle() is None
            endpoint.retire()

    _run(scenario())


def test_a_connection_that_nobody_uses_is_closed_in_time() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        with tempfile.TemporaryDirectory(prefix="gs") as folder:
            replica = Replica(Path(folder) / "r.sock")
            await replica.start()
            endpoint = Endpoint(f"unix:{replica.path}", loop=loop, idle=IdleConnections(loop, idle_s=0.05))
            endpoint.keep(await endpoint.connect())
            await until(lambda: replica.connections == 1)
            await until(lambda: replica.open == 0)
            assert endpoint.take_idle() is None
            await replica.stop()

    _run(scenario())


def test_a_replica_on_tcp_is_served_like_one_on_a_unix_socket(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        replica = Replica(Path("unused"))
        server = await asyncio.start_server(replica.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        route = Route("far", 1, f"127.0.0.1:{port}", 16)
        await stand.publish(echo=FunctionRoutes(replicas=(route,)))
        for body in (b"1", b"2"):
            assert (await stand.ask(post(body))).body == body
        assert replica.connections == 1
        server.close()
        await replica.stop()

    play(scenario)


@pytest.mark.parametrize("endpoint", ["", "host", "host:port", "unix:", "unix:/" + "x" * 200])
def test_an_endpoint_that_is_none_is_out_of_reach_and_harms_nobody(play: Play, endpoint: str) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes(replicas=(Route("bad", 1, endpoint, 16),)))
        assert (await stand.ask(post(b"x"))).status == 503
        await stand.serve()
        assert (await stand.ask(post(b"x"))).status == 200

    play(scenario, queue_timeout_s=0.1)
