"""No byte of one request ends up in another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.dataplane.stand import Stand
from tests.unit.dataplane.talk import chunked, post, read_answer

Play = Callable[..., None]
CLIENTS = 200
REQUESTS = 3


def _tagged(client: int, number: int) -> bytes:
    size = random.Random(client * 1000 + number).randrange(0, 20_000)
    tag = b"<%d.%d>" % (client, number)
    return tag * (size // len(tag) + 1)


def test_200_clients_with_tagged_bodies_get_their_own_back(play: Play) -> None:
    async def client(stand: Stand, number: int) -> None:
        chance = random.Random(number)
        reader, writer = await stand.connect()
        if number % 10 == 9:  # some cut off in the middle of their upload
            writer.write(post(_tagged(number, 0))[:-1])
            await writer.drain()
            writer.transport.abort()
            return
        bodies = [_tagged(number, at) for at in range(REQUESTS)]
        for body in bodies:  # pipelined, in pieces
            raw = post(body) if chance.random() < 0.5 else _chunked_post(body, chance)
            for piece in _cut(raw, chance):
                writer.write(piece)
                await writer.drain()
        for body in bodies:
            assert (await read_answer(reader)).body == body

    async def scenario(stand: Stand) -> None:
        await stand.serve(None, None, None, most=8)
        await asyncio.gather(*(client(stand, number) for number in range(CLIENTS)))

    play(scenario)


def _chunked_post(body: bytes, chance: random.Random) -> bytes:
    head = b"POST /function/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + chunked(*_cut(body, chance))


def _cut(data: bytes, chance: random.Random) -> list[bytes]:
    ends = sorted(chance.randrange(len(data) + 1) for _ in range(3))
    return [data[start:end] for start, end in zip([0, *ends], [*ends, len(data)], strict=True)]


STREAM = (
    post(b"one")
    + b"POST /function/echo HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
    + chunked(b"tw", b"o")
    + b"GET /function/nope HTTP/1.1\r\nHost: t\r\n\r\n"
    + post(b"", headers="X-Call-Id: 7\r\n")
    + post(b"last", headers="Connection: close\r\n")
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.sets(st.integers(1, len(STREAM) - 1), max_size=40))
def test_how_the_network_cuts_a_stream_changes_nothing(play: Play, cuts: set[int]) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        reader, writer = await stand.connect()
        ends = [*sorted(cuts), len(STREAM)]
        for start, end in zip([0, *ends], ends, strict=False):
            writer.write(STREAM[start:end])
            await asyncio.sleep(0)  # lets the worker read this piece by itself
        answers = [await read_answer(reader) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 404, 200, 200]
        assert [answer.body for answer in answers if answer.status == 200] == [b"one", b"two", b"", b"last"]
        assert await reader.read() == b""

    play(scenario)
