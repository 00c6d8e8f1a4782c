"""Heads are read and written by rule; the wire tests show the same through sockets."""

from __future__ import annotations

import uuid

import pytest
from gshare.head_limits import HEADERS_LIMIT

from gateway_plugin.dataplane.callid import new_call_id
from gateway_plugin.dataplane.heads import (
    BadHead,
    Header,
    chunk,
    read_answer,
    read_request,
    write_answer,
    write_request,
)

HOST: Header = (b"Host", b"h")


def _read(*headers: Header, version: str = "1.1") -> bytes:
    head = read_request(b"POST", b"/x", version=version, keep_alive=True, headers=headers)
    return write_request(head, b"/y", extra=[b"X-Added: 1\r\n"])


def test_a_request_is_written_with_its_own_headers_in_order_and_those_added() -> None:
    assert _read((b"Accept", b"*/*"), HOST, (b"X-A", b"1"), (b"x-a", b"2"), (b"Content-Length", b"3")) == (
        b"POST /y HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 3\r\nX-Added: 1\r\n\r\n"
    )


def test_an_http_1_0_request_without_host_gets_one() -> None:
    assert _read(version="1.0") == b"POST /y HTTP/1.1\r\nHost: localhost\r\nX-Added: 1\r\n\r\n"


def test_more_headers_than_a_replica_takes_are_refused() -> None:
    most = [HOST, *[(b"X", b"")] * (HEADERS_LIMIT - 1)]

    assert _read(*most)
    with pytest.raises(BadHead, match="1000 headers") as refused:
        _read(*most, (b"X", b""))
    assert refused.value.status == 431


def test_what_connection_names_is_left_out_whatever_its_case() -> None:
    assert b"Secret" not in _read(HOST, (b"X-Secret", b"1"), (b"Connection", b"close , x-sEcret"))


@pytest.mark.parametrize(
    ("headers", "version", "status"),
    [
        ((HOST,), "2.0", 505),
        ((), "1.1", 400),
        ((HOST, HOST), "1.1", 400),
        ((HOST, (b"transfer-encoding", b"chunked"), (b"content-length", b"1")), "1.1", 400),
        ((HOST, (b"transfer-encoding", b"chunked"), (b"Transfer-Encoding", b"chunked")), "1.1", 400),
        ((HOST, (b"transfer-encoding", b"gzip")), "1.1", 501),
        ((HOST, (b"transfer-encoding", b"chunked")), "1.0", 400),
        ((HOST, (b"expect", b"more")), "1.1", 417),
    ],
)
def test_a_head_that_could_be_read_in_two_ways_is_refused(
    headers: tuple[Header, ...], version: str, status: int
) -> None:
    with pytest.raises(BadHead) as caught:
        _read(*headers, version=version)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("status", "headers", "to_head", "until_close"),
    [
        (200, ((b"Content-Length", b"3"),), False, False),
        (200, ((b"Transfer-Encoding", b"Chunked"),), False, False),
        (200, (), False, True),
        (200, (), True, False),
        (204, (), False, False),
        (304, (), False, False),
    ],
)
def test_where_an_answer_ends_follows_from_its_head(
    status: int, headers: tuple[Header, ...], to_head: bool, until_close: bool
) -> None:
    assert read_answer(status, b"X", headers, to_head=to_head).until_close is until_close


def test_a_204_is_written_without_any_framing() -> None:
    head = read_answer(204, b"No Content", [(b"Content-Length", b"0")], to_head=False)
    assert write_answer(head, chunked=False, extra=[]) == b"HTTP/1.1 204 No Content\r\n\r\n"


def test_an_empty_piece_never_ends_a_chunked_body() -> None:
    assert b"".join(chunk([b"ab", b"", b"c"])) == b"2\r\nab\r\n1\r\nc\r\n"


def test_call_ids_are_distinct_random_uuids() -> None:
    ids = {uuid.UUID(new_call_id().decode()) for _ in range(1000)}
    assert len(ids) == 1000
    assert all((call_id.version, call_id.variant) == (4, uuid.RFC_4122) for call_id in ids)
