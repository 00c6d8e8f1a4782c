"""Bodies arrive intact in every framing, with exactly one framing header on every hop (user cases A11, A12)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest

from tests.unit.dataplane.stand import Handler, Stand
from tests.unit.dataplane.talk import Message, chunked, ok, read_answer, read_request

Play = Callable[..., None]
SIZES = (0, 1, 1_000_000)
BODY = random.Random(7).randbytes(1_000_000)
CONNECTIONS = {"keep-alive": ("1.1", ""), "close": ("1.1", "Connection: close\r\n"), "1.0": ("1.0", "")}


def _request(framing: str, body: bytes, *, connection: str) -> bytes:
    version, line = CONNECTIONS[connection]
    head = f"POST /function/echo HTTP/{version}\r\nHost: test\r\n{line}"
    if framing == "length":
        return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
    if framing == "chunked":
        return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + chunked(body[:1000], body[1000:])
    return f"{head}\r\n".encode()


REQUESTS = [
    (size, framing, connection)
    for size in SIZES
    for framing in ("length", "chunked", "none")
    for connection in CONNECTIONS
    if not (framing == "none" and size) and not (framing == "chunked" and connection == "1.0")
]


@pytest.mark.parametrize(("size", "framing", "connection"), REQUESTS)
def test_request_bodies_reach_the_replica_with_the_framing_they_came_with(
    play: Play, size: int, framing: str, connection: str
) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(_request(framing, BODY[:size], connection=connection))
        answer = await read_answer(reader)
        assert answer.body == BODY[:size]
        assert replica.requests[0].body == BODY[:size]
        assert replica.requests[0].framing == framing
        if connection == "keep-alive":
            writer.write(_request(framing, BODY[:size], connection=connection))
            assert (await read_answer(reader)).body == BODY[:size]
            assert replica.connections == 1
        else:
            assert answer.one("Connection") == "close"
            assert await reader.read() == b""

    play(scenario)


def _answering(framing: str, body: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader) is not None:
            if framing == "length":
                writer.write(ok(body))
            elif framing == "chunked":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                writer.write(chunked(body[:1000], body[1000:]))
            else:
                writer.write(b"HTTP/1.1 200 OK\r\n\r\n" + body)
                await writer.drain()
                writer.close()
                return

    return handler


EXPECTED = {"length": "length", "chunked": "chunked", "close": "chunked"}


@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("framing", EXPECTED)
@pytest.mark.parametrize("size", SIZES)
def test_answer_bodies_reach_the_client_in_a_framing_it_understands(
    play: Play, size: int, framing: str, connection: str
) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve(_answering(framing, BODY[:size]))
        reader, writer = await stand.connect()
        writer.write(_request("none", b"", connection=connection))
        answer = await read_answer(reader)
        assert answer.body == BODY[:size]
        assert answer.framing == (EXPECTED[framing] if connection != "1.0" or framing == "length" else "close")
        if connection == "keep-alive":
            writer.write(_request("none", b"", connection=connection))
            assert (await read_answer(reader)).body == BODY[:size]
        else:
            assert await reader.read() == b""

    play(scenario)


def test_an_http_1_0_client_that_asks_for_it_keeps_its_connection(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        for _ in range(2):
            writer.write(b"POST /function/echo HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi")
            answer = await read_answer(reader)
            assert answer.body == b"hi"
            assert answer.one("Connection") == "keep-alive"

    play(scenario)


HEADLESS = {
    "HEAD": ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "5"),
    "204": ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", None),
    "304": ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", "7"),
}


@pytest.mark.parametrize("case", HEADLESS)
def test_answers_without_body_leave_the_connections_usable(play: Play, case: str) -> None:
    method, raw, length = HEADLESS[case]

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader) is not None:
            writer.write(raw)

    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve(handler)
        reader, writer = await stand.connect()
        for _ in range(3):
            writer.write(f"{method} /function/echo HTTP/1.1\r\nHost: test\r\n\r\n".encode())
            answer = await read_answer(reader, to_head=True)
            assert answer.all("Content-Length") == ([length] if length else [])
            assert not answer.all("Transfer-Encoding")
        assert replica.connections == 1

    play(scenario)


def test_interim_answers_of_a_replica_are_swallowed(play: Play) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await read_request(reader) is not None:
            writer.write(b"HTTP/1.1 102 Processing\r\nX-Early: 1\r\n\r\n")
            writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok(b"done"))

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler)
        answer: Message = await stand.ask(b"GET /function/echo HTTP/1.1\r\nHost: test\r\n\r\n")
        assert answer.interim == []
        assert answer.body == b"done"
        assert not answer.all("X-Early") and not answer.all("Link")

    play(scenario)
