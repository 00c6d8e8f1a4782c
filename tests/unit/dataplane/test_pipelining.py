"""Requests sent without waiting are answered in order, whatever they are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.unit.dataplane.stand import Stand, until
from tests.unit.dataplane.talk import Message, ok, post, read_answer, read_request

Play = Callable[..., None]


def test_answers_come_in_the_order_of_the_requests_and_one_at_a_time_is_sent(play: Play) -> None:
    first_may_end = asyncio.Event()
    seen: list[Message] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            seen.append(request)
            if request.target == "/1":
                await first_may_end.wait()
            writer.write(ok(request.body))

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler)
        reader, writer = await stand.connect()
        for number in (1, 2, 3):
            writer.write(post(b"%d" % number, path=f"/function/echo/{number}"))
        await until(lambda: len(seen) == 1)
        first_may_end.set()
        assert [(await read_answer(reader)).body for _ in range(3)] == [b"1", b"2", b"3"]

    play(scenario)


def test_thousands_of_refused_requests_in_one_read_are_all_answered(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        count = 3000
        writer.write(b"GET /function/no HTTP/1.1\r\nHost: t\r\n\r\n" * count + post(b"last"))
        for _ in range(count):
            assert (await read_answer(reader)).status == 404
        assert (await read_answer(reader)).body == b"last"

    play(scenario)


def test_good_requests_before_a_bad_one_are_served(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(post(b"1") + post(b"2") + b"rubbish\r\n\r\n" + post(b"3"))
        assert (await read_answer(reader)).body == b"1"
        assert (await read_answer(reader)).body == b"2"
        assert (await read_answer(reader)).status == 400
        assert await reader.read() == b""

    play(scenario)


def test_nothing_after_connection_close_is_served(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(post(b"1", headers="Connection: close\r\n") + post(b"2"))
        answer = await read_answer(reader)
        assert answer.body == b"1"
        assert answer.one("Connection") == "close"
        assert await reader.read() == b""
        assert len(replica.requests) == 1

    play(scenario)


def test_a_pipelined_upload_waits_unread_until_its_turn(play: Play) -> None:
    first_may_end = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            if request.target == "/slow":
                await first_may_end.wait()
            writer.write(ok(request.body))

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler)
        reader, writer = await stand.connect()
        body = bytes(20_000_000)
        writer.write(post(path="/function/echo/slow") + post(body))
        await until(lambda: stand.in_flight() == 1)
        assert writer.transport.get_write_buffer_size() > 10_000_000, "it was read though nobody wanted it"
        first_may_end.set()
        assert (await read_answer(reader)).body == b""
        assert (await read_answer(reader)).body == body

    play(scenario)
