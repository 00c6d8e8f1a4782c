"""How long a worker bears with clients that do nothing, so that none of them holds a place for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gateway_plugin.dataplane import plane
from tests.unit.dataplane.stand import Stand, until
from tests.unit.dataplane.talk import post, read_answer, read_head

Play = Callable[..., None]


def test_a_client_that_takes_nothing_of_its_answer_is_cut_off(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "STALL_S", 0.1)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while True:
            writer.write(bytes(1_000_000))
            await writer.drain()

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler)
        _, writer = await stand.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /function/echo HTTP/1.1\r\nHost: t\r\n\r\n")
        await until(lambda: stand.in_flight() == 1)
        await until(lambda: stand.outcome("client_cancelled") == 1)
        assert stand.in_flight() == 0

    play(scenario)


def test_a_kept_connection_without_requests_is_closed_in_time(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plane, "CLIENT_IDLE_S", 0.1)

    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        for body in (b"1", b"2"):
            writer.write(post(body))
            assert (await read_answer(reader)).body == body
        assert await reader.read() == b""

    play(scenario)


def test_a_client_that_goes_on_sending_after_a_refusal_can_read_it_and_is_then_cut(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane, "LINGER_S", 0.2)

    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(b"POST /function/echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000000\r\n\r\n")
        for _ in range(100):
            writer.write(bytes(10_000))
        assert (await read_answer(reader)).status == 413
        assert await reader.read() == b""
        await until(lambda: not stand.worker.plane.clients)

    play(scenario, max_body_bytes=1024)
