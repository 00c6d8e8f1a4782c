"""Who breaks off, when, and what the other side is told (user cases A1, A2, A5)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from gateway_plugin.model import FunctionRoutes
from tests.unit.dataplane.stand import Gate, Handler, Stand, until
from tests.unit.dataplane.talk import chunked, ok, post, read_answer, read_body, read_head, read_request

Play = Callable[..., None]


def test_a_client_that_goes_away_takes_its_request_with_it(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        gate = Gate()
        (replica,) = await stand.serve(gate)
        _, writer = await stand.connect()
        writer.write(post(b"x"))
        await until(lambda: gate.waiting == 1 and stand.in_flight() == 1)
        writer.transport.abort()
        await until(lambda: stand.outcome("client_cancelled") == 1)
        assert stand.in_flight() == 0
        gate.opened.set()
        await until(lambda: replica.open == 0)

    play(scenario)


def test_a_client_that_goes_away_while_it_waits_leaves_the_queue(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        _, writer = await stand.connect()
        writer.write(post(b"x"))
        await until(lambda: stand.waiting() == 1)
        writer.transport.abort()
        await until(lambda: stand.waiting() == 0)
        assert stand.outcome("client_cancelled") == 1

    play(scenario)


def test_a_client_that_goes_away_in_its_upload_is_not_completed(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        _, writer = await stand.connect()
        writer.write(post(bytes(1_000_000))[:500_000])
        await until(lambda: replica.open == 1 and stand.in_flight() == 1)
        writer.transport.abort()
        await until(lambda: replica.open == 0)
        assert replica.requests == []

    play(scenario)


def _after_request(answer: bytes) -> Handler:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(answer)
        await writer.drain()

    return handler


def test_a_replica_that_dies_before_its_answer_is_a_503_that_says_so(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve(_after_request(b""))
        answer = await stand.ask(post(b"x"))
        assert answer.status == 503
        assert b"replica replica-1 of function echo.openfaas-fn closed the connection" in answer.body
        assert answer.one("X-OpenFaaS-Internal") == "proxy"
        assert stand.outcome("upstream_lost") == 1

    play(scenario)


CUT_ANSWERS = {
    "by length": b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
}


@pytest.mark.parametrize("case", CUT_ANSWERS)
def test_an_answer_that_breaks_off_is_cut_and_never_looks_complete(play: Play, case: str) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve(_after_request(CUT_ANSWERS[case]))
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await stand.ask(post(b"x"))

    play(scenario)


GARBLED = {
    "no HTTP": b"hello\r\n\r\n",
    "both framings": b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a bad chunk in the first read": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
    "a protocol switch": b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
    "an endless head": b"HTTP/1.1 200 OK\r\nX-A: " + b"a" * 300_000,
}


@pytest.mark.parametrize("case", GARBLED)
def test_an_answer_that_is_not_http_is_502(play: Play, case: str) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve(_after_request(GARBLED[case]))
        answer = await stand.ask(post(b"x"))
        assert answer.status == 502, answer.body
        assert b"replica-1" in answer.body

    play(scenario)


def test_bytes_after_an_answer_never_reach_the_next_request(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve(_after_request(ok(b"mine") + ok(b"stolen")))
        reader, writer = await stand.connect()
        for connections in (1, 2):
            writer.write(post(b"x"))
            assert (await read_answer(reader)).body == b"mine"
            assert replica.connections == connections

    play(scenario)


def test_no_answer_in_time_is_a_504_that_names_the_hop_and_the_setting(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        gate = Gate()
        (replica,) = await stand.serve(gate)
        answer = await stand.ask(post(b"x"))
        assert answer.status == 504
        assert b"replica-1 of function echo.openfaas-fn" in answer.body
        assert b"0.1 s (GSHARE_UPSTREAM_TIMEOUT_S)" in answer.body
        assert stand.outcome("upstream_timeout") == 1
        gate.opened.set()
        await until(lambda: replica.open == 0)

    play(scenario, upstream_timeout_s=0.1)


def test_an_answer_that_began_in_time_may_take_longer_than_the_limit(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        limit_passed = asyncio.Event()

        async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            request = await read_request(reader)
            if request is not None and request.target == "/stream":
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            await limit_passed.wait()
            writer.write(chunked(b"ok"))
            await writer.drain()

        await stand.serve(handler)
        reader, writer = await stand.connect()
        writer.write(post(b"x", path="/function/echo/stream"))
        head = await read_head(reader)
        assert head is not None
        assert (await stand.ask(post(b"x"))).status == 504
        limit_passed.set()
        await read_body(reader, head)
        assert head.body == b"ok"

    play(scenario, upstream_timeout_s=0.1)


def test_an_upload_that_stalls_is_408_and_frees_its_place(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        writer.write(post(b"x" * 100)[:-1])
        answer = await read_answer(reader)
        assert answer.status == 408
        assert stand.in_flight() == 0

    play(scenario, upstream_timeout_s=0.1)


def test_a_kept_connection_that_the_replica_closed_is_not_used_again(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        replica = await stand.replica()
        await stand.publish(echo=FunctionRoutes(replicas=(stand.route(replica.path),)))
        assert (await stand.ask(post(b"1"))).body == b"1"
        await replica.stop()
        replica.path.unlink()
        again = await stand.replica(path=replica.path)
        assert (await stand.ask(post(b"2"))).body == b"2"
        assert len(again.requests) == 1

    play(scenario)


def test_requests_that_cannot_reach_one_replica_go_to_another(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        dead, living = await stand.serve(None, None)
        await dead.stop()
        answers = await asyncio.gather(*(stand.ask(post(b"%d" % n)) for n in range(40)))
        assert [answer.body for answer in answers] == [b"%d" % n for n in range(40)]
        assert len(living.requests) == 40

    play(scenario)


def test_requests_wait_for_a_ready_replica_that_does_not_listen_yet(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        path = stand.run / "late.sock"
        await stand.publish(echo=FunctionRoutes(replicas=(stand.route(path, most=400),)))
        asked = [asyncio.ensure_future(stand.ask(post(b"%d" % n))) for n in range(200)]
        await until(lambda: stand.waiting() == 200)
        await stand.replica(path=path)
        answers = await asyncio.gather(*asked)
        assert [answer.status for answer in answers] == [200] * 200

    play(scenario)


def test_a_replica_that_answers_before_the_upload_ends_is_heard(play: Play) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_head(reader)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbad")
        await writer.drain()
        await reader.read()

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler)
        reader, writer = await stand.connect()
        writer.write(post(bytes(100_000))[:50_000])
        answer = await read_answer(reader)
        assert (answer.status, answer.body) == (400, b"bad")
        assert await reader.read() == b"", "the connection is no use any more"

    play(scenario)
