"""Heads of requests at a real replica: as large as the gateway lets through, and refused in JSON beyond."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from contextlib import closing

import pytest
from gshare.head_limits import GATEWAY_HEADERS, HEAD_LIMIT_BYTES, HEADERS_LIMIT

from tests.replica_process import ReplicaProcess, replica
from tests.unix_http import Answer

COUNT = """
def handle(event, context):
    longest = max((len(value) for _, value in event.headers.items()), default=0)
    return {"body": {"headers": len(list(event.headers.items())), "longest": longest, "path": len(event.path)}}
"""
HOST = "Host: replica\r\n"
TOO_LARGE = "the request's head is over 65536 bytes or 1000 headers; send fewer or shorter headers"


@pytest.fixture(scope="module")
def counting() -> Iterator[ReplicaProcess]:
    """A replica that counts the headers it gets."""
    with replica(COUNT) as it:
        it.wait_ready()
        yield it


def send(it: ReplicaProcess, head: str) -> Answer:
    """The answer to a head that may be anything."""
    with closing(socket.socket(socket.AF_UNIX)) as connection:
        connection.settimeout(60)
        connection.connect(str(it.socket))
        connection.sendall(head.encode("latin-1"))
        response = http.client.HTTPResponse(connection)
        response.begin()
        return Answer(response.status, tuple(response.getheaders()), response.read())


@pytest.mark.parametrize(
    ("target", "headers", "seen"),
    [
        ("/", "".join(f"X-{n}: 1\r\n" for n in range(HEADERS_LIMIT + GATEWAY_HEADERS - 1)), {"headers": 1016}),
        ("/", f"X-Long: {'v' * (HEAD_LIMIT_BYTES - 100)}\r\n", {"longest": 65_436}),
        (f"/{'p' * (HEAD_LIMIT_BYTES - 100)}", "", {"path": 65_437}),
        ("/", "".join(f"X-{n}: {'v' * 1000}\r\n" for n in range(60)), {"headers": 61}),
    ],
    ids=["many headers", "one long header", "a long path", "many long headers"],
)
def test_every_head_that_the_gateway_lets_through_reaches_the_function(
    counting: ReplicaProcess, target: str, headers: str, seen: dict[str, int]
) -> None:
    answer = send(counting, f"GET {target} HTTP/1.1\r\n{HOST}{headers}\r\n")

    assert answer.status == 200, answer.body
    assert answer.json() | seen == answer.json()


@pytest.mark.parametrize(
    ("head", "status", "code"),
    [
        ("".join(f"X-{n}: 1\r\n" for n in range(HEADERS_LIMIT + 100)), 431, "request_header_fields_too_large"),
        (f"X-Long: {'v' * 80_000}\r\n", 431, "request_header_fields_too_large"),
        ("".join(f"X-{n}: {'v' * 1000}\r\n" for n in range(100)), 431, "request_header_fields_too_large"),
    ],
    ids=["many headers", "one long header", "many long headers"],
)
def test_a_larger_head_is_refused_in_json_with_the_limits(
    counting: ReplicaProcess, head: str, status: int, code: str
) -> None:
    answer = send(counting, f"GET / HTTP/1.1\r\n{HOST}{head}\r\n")

    assert (answer.status, answer.header("Content-Type")) == (status, "application/json")
    assert answer.json() == {"error": {"code": code, "message": TOO_LARGE, "retryable": False}}


@pytest.mark.parametrize("start", ["GET /", f"GET / HTTP/1.1\r\n{HOST}X: "], ids=["request line", "header"])
def test_a_head_without_an_end_is_given_up_at_the_limit(counting: ReplicaProcess, start: str) -> None:
    answer = send(counting, start + "x" * (HEAD_LIMIT_BYTES + 20_000))

    assert answer.status in (414, 431)
    assert answer.json()["error"]["message"] == TOO_LARGE


@pytest.mark.parametrize(
    ("request_text", "status", "says"),
    [
        ("GET / HTTP/9.9\r\n\r\n", 400, "(9, 9)"),
        ("nonsense\r\n\r\n", 400, "nonsense"),
        (f"GET / HTTP/1.1\r\n{HOST}no colon\r\n\r\n", 400, "no colon"),
        (f"GET / HTTP/1.1\r\n{HOST}Content-Length: -1\r\n\r\n", 400, "CONTENT-LENGTH"),
        (f"GET / HTTP/1.1\r\n{HOST}Transfer-Encoding: zip\r\n\r\n", 501, "zip"),
        (f"GET / HTTP/1.1\r\n{HOST}Expect: <b>\r\n\r\n", 417, "<b>"),
    ],
)
def test_what_is_no_http_is_refused_in_json_and_the_next_request_is_served(
    counting: ReplicaProcess, request_text: str, status: int, says: str
) -> None:
    refused = send(counting, request_text)

    assert refused.status == status
    assert says in refused.json()["error"]["message"]
    assert counting.call("/").status == 200
