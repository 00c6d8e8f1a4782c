"""A small HTTP/1.1 reader of the tests' own, for both sides, so that the proxy is not judged by its own parser."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field


@dataclass(slots=True)
class Message:
    """A request or an answer as it came over the wire."""

    start: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    framing: str = "none"
    """`length`, `chunked`, `close` or `none`."""
    interim: list[str] = field(default_factory=list)
    """Start lines of 1xx answers before this one."""

    @property
    def status(self) -> int:
        return int(self.start.split()[1])

    @property
    def target(self) -> str:
        return self.start.split()[1]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def one(self, name: str) -> str:
        """The value of a header that is there exactly once."""
        values = self.all(name)
        assert len(values) == 1, f"{name}: {values}"
        return values[0]


async def read_head(reader: asyncio.StreamReader) -> Message | None:
    """The next head; None at the end of the stream."""
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        assert not error.partial, f"connection ended within a head: {error.partial!r}"
        return None
    start, *lines = raw.decode("latin-1").split("\r\n")[:-2]
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
    return Message(start, headers)


async def read_request(reader: asyncio.StreamReader) -> Message | None:
    """A whole request; None at the end of the stream."""
    message = await read_head(reader)
    if message is not None:
        await read_body(reader, message)
    return message


async def read_answer(reader: asyncio.StreamReader, *, to_head: bool = False) -> Message:
    """A whole answer. Raises: AssertionError when the stream ends before one."""
    interim: list[str] = []
    while True:
        message = await read_head(reader)
        assert message is not None, "connection closed without an answer"
        if message.status >= 200:
            break
        interim.append(message.start)
    message.interim = interim
    if not to_head and message.status not in (204, 304):
        await read_body(reader, message, until_close=True)
    return message


async def read_body(reader: asyncio.StreamReader, message: Message, *, until_close: bool = False) -> None:
    """The body that the head announces. Raises: asyncio.IncompleteReadError when it is cut."""
    length, coding = message.all("Content-Length"), message.all("Transfer-Encoding")
    assert len(length) + len(coding) <= 1, f"more than one framing header: {message.headers}"
    if length:
        message.framing = "length"
        message.body = await reader.readexactly(int(length[0]))
    elif coding:
        assert coding == ["chunked"]
        message.framing = "chunked"
        message.body = await _read_chunks(reader)
    elif until_close:
        message.framing = "close"
        message.body = await reader.read(-1)


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    while size := int(await reader.readuntil(b"\r\n"), 16):
        pieces.append(await reader.readexactly(size))
        assert await reader.readexactly(2) == b"\r\n"
    assert await reader.readexactly(2) == b"\r\n"
    return b"".join(pieces)


def chunked(*pieces: bytes) -> bytes:
    """The pieces as a chunked body."""
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


def post(body: bytes = b"", *, path: str = "/function/echo", headers: str = "", version: str = "1.1") -> bytes:
    """A POST with Content-Length; `headers` are whole lines."""
    head = f"POST {path} HTTP/{version}\r\nHost: test\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


def ok(body: bytes = b"", *, headers: str = "") -> bytes:
    """A 200 with Content-Length."""
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body
