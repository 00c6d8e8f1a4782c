"""Large bodies flow through without being held, and each side may be as slow as it likes (user case A11)."""

from __future__ import annotations

import asyncio
import hashlib
import random
import tracemalloc
from collections.abc import Callable

import pytest

from tests.unit.dataplane.stand import Stand, until
from tests.unit.dataplane.talk import post, read_head

Play = Callable[..., None]
PIECE = random.Random(3).randbytes(100_000)
PIECES = 500
GROWTH_LIMIT_BYTES = 16_000_000


async def _echo_as_it_comes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers while it reads; holds nothing either."""
    head = await read_head(reader)
    assert head is not None
    if head.all("Content-Length"):
        left = int(head.one("Content-Length"))
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n".encode())
        while left:
            data = await reader.read(min(left, 100_000))
            left -= len(data)
            writer.write(data)
            await writer.drain()
        return
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        line = await reader.readuntil(b"\r\n")
        writer.write(line + await reader.readexactly(int(line, 16) + 2))
        await writer.drain()
        if line == b"0\r\n":
            return


async def _upload(writer: asyncio.StreamWriter, *, chunked: bool) -> None:
    for _ in range(PIECES):
        writer.write(b"%x\r\n%b\r\n" % (len(PIECE), PIECE) if chunked else PIECE)
        await writer.drain()
    if chunked:
        writer.write(b"0\r\n\r\n")


async def _digest_of_body(reader: asyncio.StreamReader, *, chunked: bool) -> str:
    digest = hashlib.sha256()
    if not chunked:
        left = len(PIECE) * PIECES
        while left:
            data = await reader.read(min(left, 100_000))
            assert data, "cut"
            left -= len(data)
            digest.update(data)
        return digest.hexdigest()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        digest.update((await reader.readexactly(size + 2))[:-2])
    return digest.hexdigest()


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
def test_50_mb_flow_both_ways_at_once_and_are_not_held(play: Play, chunked: bool) -> None:
    expected = hashlib.sha256(PIECE * PIECES).hexdigest()
    framing = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(PIECE) * PIECES}"

    async def scenario(stand: Stand) -> None:
        await stand.serve(_echo_as_it_comes)
        reader, writer = await stand.connect()
        tracemalloc.start()
        try:
            writer.write(f"POST /function/echo HTTP/1.1\r\nHost: t\r\n{framing}\r\n\r\n".encode())
            upload = asyncio.ensure_future(_upload(writer, chunked=chunked))
            await read_head(reader)
            assert await _digest_of_body(reader, chunked=chunked) == expected
            await upload
            assert tracemalloc.get_traced_memory()[1] < GROWTH_LIMIT_BYTES
        finally:
            tracemalloc.stop()

    play(scenario)


def test_a_client_that_does_not_read_stops_its_replica_from_sending(play: Play) -> None:
    sent = 0

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await read_head(reader)
        writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(PIECE) * PIECES}\r\n\r\n".encode())
        for _ in range(PIECES):
            writer.write(PIECE)
            await writer.drain()
            sent += len(PIECE)
        await reader.read()

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler, None)
        reader, writer = await stand.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(b"GET /function/echo HTTP/1.1\r\nHost: t\r\n\r\n")
        (client,) = stand.worker.plane.clients
        await until(lambda: client.is_blocked)
        for _ in range(50):  # others are served meanwhile, and nothing more of this answer is taken in
            await stand.ask(post(b"x"))
        assert sent < GROWTH_LIMIT_BYTES
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        await read_head(reader)
        await _digest_of_body(reader, chunked=False)

    play(scenario)


def test_a_replica_that_does_not_read_stops_its_client_from_sending(play: Play) -> None:
    may_read = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await read_head(reader)
        assert head is not None
        await may_read.wait()
        await _digest_of_body(reader, chunked=False)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await writer.drain()

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler, None)
        reader, writer = await stand.connect()
        writer.write(
            f"POST /function/echo HTTP/1.1\r\nHost: t\r\nContent-Length: {len(PIECE) * PIECES}\r\n\r\n".encode()
        )
        upload = asyncio.ensure_future(_upload(writer, chunked=False))
        await until(lambda: stand.in_flight(1) == 1 and writer.transport.get_write_buffer_size() > 60_000)
        for _ in range(50):
            await stand.ask(post(b"x"))
        assert not upload.done()
        may_read.set()
        await upload
        head = await read_head(reader)
        assert head is not None and head.status == 200
        assert await reader.readexactly(2) == b"ok"

    play(scenario)


def test_a_piece_of_an_answer_arrives_before_the_next_is_made(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        next_wanted = asyncio.Event()

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            for number in range(3):
                next_wanted.clear()
                writer.write(b"7\r\ndata: %d\r\n" % number)
                await next_wanted.wait()
            writer.write(b"0\r\n\r\n")
            await writer.drain()

        await stand.serve(handler)
        reader, writer = await stand.connect()
        writer.write(b"GET /function/echo HTTP/1.1\r\nHost: t\r\n\r\n")
        head = await read_head(reader)
        assert head is not None and head.one("Content-Type") == "text/event-stream"
        for number in range(3):
            assert await reader.readexactly(12) == b"7\r\ndata: %d\r\n" % number
            next_wanted.set()
        assert await reader.readexactly(5) == b"0\r\n\r\n"

    play(scenario)
