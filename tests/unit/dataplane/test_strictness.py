"""What could be read in two ways is refused before a replica sees it: no request is smuggled behind another."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.dataplane.stand import Stand, until
from tests.unit.dataplane.talk import read_answer

Play = Callable[..., None]
START = b"POST /function/echo HTTP/1.1\r\nHost: test\r\n"
SMUGGLED = b"GET /function/echo/smuggled HTTP/1.1\r\nHost: test\r\n\r\n"

REFUSED = {
    "length and chunked": (START + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "chunked and length": (START + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", 400),
    "two lengths": (START + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    "two different lengths": (START + b"Content-Length: 3\r\nContent-Length: 30\r\n\r\nabc", 400),
    "a list of lengths": (START + b"Content-Length: 3, 3\r\n\r\nabc", 400),
    "a signed length": (START + b"Content-Length: +3\r\n\r\nabc", 400),
    "a negative length": (START + b"Content-Length: -3\r\n\r\nabc", 400),
    "a length over 64 bits": (START + b"Content-Length: 99999999999999999999999\r\n\r\nabc", 400),
    "chunked twice": (START + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a second coding": (START + b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "gzip inside chunked": (START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    "gzip alone": (START + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    "chunked misspelt": (START + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    "chunked in HTTP/1.0": (b"POST /function/echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    "a folded header": (START + b"X-A: a\r\n b\r\n\r\n", 400),
    "space before the colon": (START + b"Content-Length : 3\r\n\r\nabc", 400),
    "bare LF after the request line": (b"POST /function/echo HTTP/1.1\nHost: test\r\n\r\n", 400),
    "bare LF after a header": (START[:-2] + b"\n\r\n", 400),
    "bare CR in a header": (START + b"X-A: a\rTransfer-Encoding: chunked\r\n\r\n", 400),
    "NUL in a header": (START + b"X-A: a\x00b\r\n\r\n", 400),
    "no Host": (b"GET /function/echo HTTP/1.1\r\n\r\n", 400),
    "two Hosts": (START + b"Host: other\r\n\r\n", 400),
    "HTTP/2.0": (b"GET /function/echo HTTP/2.0\r\nHost: test\r\n\r\n", 505),
    "HTTP/0.9": (b"GET /function/echo\r\n\r\n", 505),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "an unknown method": (b"FOO /function/echo HTTP/1.1\r\nHost: test\r\n\r\n", 400),
    "CONNECT": (b"CONNECT echo:80 HTTP/1.1\r\nHost: test\r\n\r\n", 501),
    "an upgrade with a body": (START + b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 53\r\n\r\n", 501),
    "bytes over 127 in the target": ("GET /function/ä HTTP/1.1\r\nHost: test\r\n\r\n".encode(), 400),
    "another expectation": (START + b"Expect: miracles\r\nContent-Length: 1\r\n\r\n", 417),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_ambiguous_request_is_refused_and_the_connection_closed(play: Play, case: str) -> None:
    raw, status = REFUSED[case]

    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(raw + SMUGGLED)
        answer = await read_answer(reader)
        assert answer.status == status, answer.body
        assert answer.one("X-OpenFaaS-Internal") == "proxy"
        assert answer.one("Connection") == "close"
        assert await reader.read() == b""
        assert replica.requests == []

    play(scenario)


CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
BAD_CHUNKS = {
    "no number": b"zz\r\nabc\r\n",
    "space after the size": b"3 \r\nabc\r\n",
    "bare LF after the size": b"3\nabc\n0\n\n",
    "longer than its size": b"3\r\nabcd\r\n",
    "a size over 64 bits": b"fffffffffffffffff\r\nabc\r\n",
    "a negative size": b"-3\r\nabc\r\n",
    "a length among the trailers": b"0\r\nContent-Length: 9\r\n\r\n",
    "size written as 0x": b"0x3\r\nabc\r\n",
}


@pytest.mark.parametrize("case", BAD_CHUNKS)
@pytest.mark.parametrize("later", [False, True])
def test_a_bad_chunk_is_refused_and_never_completes_a_request(play: Play, case: str, later: bool) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        if later:
            writer.write(CHUNKED + b"2\r\nok\r\n")
            await until(lambda: replica.open == 1)
            writer.write(BAD_CHUNKS[case] + SMUGGLED)
        else:
            writer.write(CHUNKED + BAD_CHUNKS[case] + SMUGGLED)
        answer = await read_answer(reader)
        assert answer.status == 400, answer.body
        assert await reader.read() == b""
        if later:
            await until(lambda: replica.open == 0)  # what was begun there is cut, not completed
        assert replica.requests == []

    play(scenario)


def test_trailers_are_not_passed_on_as_headers(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        answer = await stand.ask(CHUNKED + b"2\r\nhi\r\n0\r\nX-Evil: 1\r\n\r\n")
        assert answer.body == b"hi"
        assert not replica.requests[0].all("X-Evil")

    play(scenario)


def test_an_upgrade_without_a_body_is_served_as_a_plain_request(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        (replica,) = await stand.serve()
        reader, writer = await stand.connect()
        writer.write(
            b"GET /function/echo/a HTTP/1.1\r\nHost: test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
            b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + SMUGGLED
        )
        assert (await read_answer(reader)).status == 200
        assert (await read_answer(reader)).status == 200
        assert [request.target for request in replica.requests] == ["/a", "/smuggled"]
        assert not replica.requests[0].all("Upgrade") and not replica.requests[0].all("HTTP2-Settings")

    play(scenario)
