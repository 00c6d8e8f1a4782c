"""Limits on head, body and time, and what a client is told when it meets one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.dataplane.stand import Gate, Stand, until
from tests.unit.dataplane.talk import chunked, post, read_answer, read_head

Play = Callable[..., None]
EXPECT = "Expect: 100-continue\r\n"


@pytest.mark.parametrize("size", [60_000, 70_000, 1_000_000])
def test_a_head_over_64_kib_is_431(play: Play, size: int) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(post(headers="".join(f"X-{n}: {'a' * 990}\r\n" for n in range(size // 1000))))
        answer = await read_answer(reader)
        assert answer.status == (200 if size < 65_536 else 431)

    play(scenario)


def test_a_head_that_never_ends_is_431(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(b"GET /function/echo HTTP/1.1\r\nHost: t\r\nX-A: ")
        for _ in range(5):
            writer.write(b"a" * 16_384)
            await writer.drain()
        assert (await read_answer(reader)).status == 431

    play(scenario)


def test_trailers_that_never_end_are_refused(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(b"POST /function/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-A: ")
        for _ in range(5):
            writer.write(b"a" * 16_384)
            await writer.drain()
        assert (await read_answer(reader)).status == 431

    play(scenario)


def test_a_head_that_is_not_complete_in_time_is_408(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(b"GET /function/echo HTTP/1.1\r\nHost: t\r\n")
        answer = await read_answer(reader)
        assert answer.status == 408
        assert b"0.05 s" in answer.body
        assert await reader.read() == b""

    play(scenario, head_timeout_s=0.05)


def test_a_slow_head_on_a_kept_connection_is_408_too(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(post(b"x"))
        assert (await read_answer(reader)).status == 200
        writer.write(b"GET /function/echo HTTP/1.1\r\n")
        assert (await read_answer(reader)).status == 408

    play(scenario, head_timeout_s=0.05)


def test_a_connection_without_any_request_is_closed_in_time(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        reader, _writer = await stand.connect()
        assert await reader.read() == b""

    play(scenario, head_timeout_s=0.05)


def test_a_body_over_the_limit_is_413_before_it_is_sent(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(b"POST /function/echo HTTP/1.1\r\nHost: t\r\nContent-Length: 1000001\r\n\r\n")
        answer = await read_answer(reader)
        assert answer.status == 413
        assert b"1000000 bytes (GSHARE_MAX_BODY_BYTES)" in answer.body
        assert answer.one("Connection") == "close"
        assert replica.connections == 0

    play(scenario, max_body_bytes=1_000_000)


def test_a_chunked_body_over_the_limit_is_413_as_soon_as_it_is(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(b"POST /function/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(11):
            writer.write(b"%x\r\n%b\r\n" % (100_000, bytes(100_000)))
        answer = await read_answer(reader)
        assert answer.status == 413
        await until(lambda: replica.open == 0)
        assert replica.requests == []

    play(scenario, max_body_bytes=1_000_000)


@pytest.mark.parametrize("extra", [0, 1])
def test_the_body_limit_itself_is_allowed(play: Play, extra: int) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        raw = b"POST /function/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await stand.ask(raw + chunked(bytes(5000 + extra)))
        assert answer.status == (413 if extra else 200)

    play(scenario, max_body_bytes=5000)


def test_continue_is_sent_once_the_body_is_wanted(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        gate = Gate()
        (replica,) = await stand.serve(gate, most=1)
        _, first = await stand.connect()
        first.write(post(b"1"))
        await until(lambda: stand.in_flight() == 1)
        reader, writer = await stand.connect()
        head, _, body = post(b"2", headers=EXPECT).partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        await until(lambda: stand.waiting() == 1)
        gate.opened.set()
        interim = await read_head(reader)
        assert interim is not None and interim.start == "HTTP/1.1 100 Continue"
        writer.write(body)
        answer = await read_answer(reader)
        assert answer.body == b"2"
        assert answer.interim == []
        assert replica.connections == 1

    play(scenario)


def test_the_expectation_is_answered_here_and_not_passed_on(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        answer = await stand.ask(post(b"2", headers=EXPECT))
        assert answer.body == b"2"
        assert answer.interim == [], "the body had come already"
        assert not replica.requests[0].all("Expect")

    play(scenario)


def test_continue_is_not_sent_where_the_request_is_refused(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        head = post(b"x" * 10, path="/function/nope", headers=EXPECT).partition(b"\r\n\r\n")[0]
        answer = await stand.ask(head + b"\r\n\r\n")
        assert answer.status == 404
        assert answer.interim == []
        assert answer.one("Connection") == "close", "the client may send the body or not"

    play(scenario)
