"""What is added, passed on and removed between client and function (openfaas-contract §1.8)."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable

import pytest

from tests.unit.dataplane.stand import Stand
from tests.unit.dataplane.talk import ok, post, read_answer, read_request

Play = Callable[..., None]


def test_a_request_without_them_gets_call_id_start_time_and_forwarding_headers(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(post(b"x"))
        answer = await read_answer(reader)
        request = replica.requests[0]
        assert uuid.UUID(request.one("X-Call-Id")).version == 4
        assert answer.one("X-Call-Id") == request.one("X-Call-Id")
        assert answer.one("X-Start-Time") == request.one("X-Start-Time")
        assert len(request.one("X-Start-Time")) == 19
        host, port = writer.get_extra_info("sockname")
        assert request.one("X-Forwarded-For") == f"{host}:{port}"
        assert request.one("X-Forwarded-Host") == request.one("Host") == "test"
        assert answer.one("X-Served-By").startswith("fast-gshare/")
        assert float(answer.one("X-Duration-Seconds")) > 0

    play(scenario)


def test_what_the_client_brought_is_kept_and_its_call_id_not_sent_back(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        brought = "X-Call-Id: mine\r\nX-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Host: front\r\nX-Start-Time: 5\r\n"
        answer = await stand.ask(post(headers=brought + "traceparent: 00-a-b-01\r\n"))
        request = replica.requests[0]
        assert request.one("X-Call-Id") == "mine"
        assert request.one("X-Forwarded-For") == "10.0.0.1"
        assert request.one("X-Forwarded-Host") == "front"
        assert request.one("X-Start-Time") != "5"
        assert request.one("traceparent") == "00-a-b-01"
        assert not answer.all("X-Call-Id")

    play(scenario)


def test_two_requests_have_different_call_ids(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        answers = [await stand.ask(post()) for _ in range(2)]
        assert answers[0].one("X-Call-Id") != answers[1].one("X-Call-Id")

    play(scenario)


HOP_BY_HOP = (
    "Keep-Alive: timeout=5\r\nProxy-Connection: x\r\nProxy-Authorization: Basic eDp5\r\nProxy-Authenticate: Basic\r\n"
    "TE: trailers\r\nTrailer: X-T\r\nUpgrade: websocket\r\nConnection: keep-alive, X-Secret\r\nX-Secret: 1\r\n"
)
NAMES = [line.split(":")[0] for line in HOP_BY_HOP.split("\r\n")[:-1]]


def test_hop_by_hop_headers_end_at_this_hop_in_both_directions(play: Play) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            seen.extend(name for name, _ in request.headers)
            writer.write(ok(b"x", headers=HOP_BY_HOP + "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"))

    seen: list[str] = []

    async def scenario(stand: Stand) -> None:
        await stand.serve(handler)
        answer = await stand.ask(post(headers=HOP_BY_HOP + "Authorization: Bearer x\r\n"))
        for name in NAMES:
            assert name not in seen
            assert not answer.all(name)
        assert "Authorization" in seen
        assert answer.all("Set-Cookie") == ["a=1", "b=2"]

    play(scenario)


def test_connection_cannot_name_away_the_framing(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        answer = await stand.ask(post(b"body", headers="Connection: content-length, host\r\n"))
        assert answer.body == b"body"
        assert replica.requests[0].one("Host") == "test"

    play(scenario)


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "QUERY"])
def test_method_path_and_query_arrive_as_sent(play: Play, method: str) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        target = "/a/b%2Fc//d?x=1&x=2&y=%E2%9C%93"
        raw = f"{method} /function/echo{target} HTTP/1.1\r\nHost: test\r\n\r\n".encode()
        assert (await stand.ask(raw, to_head=method == "HEAD")).status == 200
        assert replica.requests[0].start == f"{method} {target} HTTP/1.1"

    play(scenario)


def test_the_name_with_the_default_namespace_is_the_same_function(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        await stand.ask(post(path="/function/echo"))
        await stand.ask(post(path="/function/echo.openfaas-fn/x"))
        assert [request.target for request in replica.requests] == ["/", "/x"]

    play(scenario)


@pytest.mark.parametrize("name", ["nope", "ECHO", "echo.other", "%65cho", "", "a" * 5000])
def test_an_unknown_function_is_404_and_says_which(play: Play, name: str) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        answer = await stand.ask(post(path=f"/function/{name}"))
        assert answer.status == 404
        assert name[:80] in answer.body.decode()
        assert answer.one("Content-Type") == "text/plain; charset=utf-8"
        assert answer.one("X-OpenFaaS-Internal") == "proxy"

    play(scenario)
