"""Framing and messages of the node's unix sockets: a replica's with the agent, and the agent's own control socket.

A frame is four bytes of big-endian length and that many bytes of JSON. Messages are typed and tagged; what does not
decode is refused by name. There is no pickle, and a frame is never larger than MAX_FRAME_BYTES.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from typing import Generic, TypeVar

import msgspec

PROTOCOL = 1
"""Version of this protocol. An agent speaks this one and the one before it."""
MAX_FRAME_BYTES = 1024 * 1024
_LENGTH = struct.Struct(">I")
Incoming = TypeVar("Incoming")


class WireError(Exception):
    """The other side sent what this protocol does not allow, or went away."""


class Message(msgspec.Struct, frozen=True, tag_field="type", tag=str.lower, forbid_unknown_fields=False):
    """Base of every message; its class name in lower case is the tag on the wire."""


class LiveConfig(msgspec.Struct, frozen=True):
    """The settings of a replica that change while it runs."""

    quota_request: float = 1.0
    quota_limit: float = 1.0
    memory_bytes: int | None = None
    slo_ms: float | None = None
    max_batch: int = 1
    max_batch_delay_ms: float = 0.0


class Hello(Message, frozen=True):
    """Replica → agent, first frame: who I am, proved by the credential I was started with."""

    credential: str
    replica: str
    pid: int
    protocol: int = PROTOCOL
    runtime: str = ""


class Welcome(Message, frozen=True):
    """Agent → replica: accepted; these are your settings."""

    version: int
    live: LiveConfig
    protocol: int = PROTOCOL


class Refused(Message, frozen=True):
    """Agent → replica: not accepted, and why."""

    reason: str


class State(Message, frozen=True):
    """Replica → agent: `loading`, `ready`, `failed` or `draining`, with what is known by then."""

    state: str
    reason: str = ""
    weights: str = ""
    weights_digest: str = ""
    memory_bytes: int = 0
    warmup_ms: float = 0.0


class Configure(Message, frozen=True):
    """Agent → replica: new live settings; answered by Ack with the same version."""

    version: int
    live: LiveConfig


class Ack(Message, frozen=True):
    """Replica → agent: the settings of that version are in force (or why not)."""

    version: int
    error: str = ""


FromReplica = Hello | State | Ack
ToReplica = Welcome | Refused | Configure


def encode(message: msgspec.Struct) -> bytes:
    """One frame. Raises: WireError if it would be larger than MAX_FRAME_BYTES."""
    body = msgspec.json.encode(message)
    if len(body) > MAX_FRAME_BYTES:
        raise WireError(f"frame of {len(body)} bytes; at most {MAX_FRAME_BYTES}")
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Cuts a byte stream into frame bodies. Sans I/O: feed bytes, get bodies."""

    def __init__(self, limit_bytes: int = MAX_FRAME_BYTES) -> None:
        self._buffer = bytearray()
        self._limit_bytes = limit_bytes

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Bodies completed by `data`. Raises: WireError on a length over the limit."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self._limit_bytes:
                raise WireError(f"frame of {length} bytes announced; at most {self._limit_bytes}")
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            yield body


class Channel(Generic[Incoming]):
    """A blocking message connection over a connected unix socket; `send` may be called from any thread."""

    def __init__(self, sock: socket.socket, incoming: object) -> None:
        self._sock = sock
        self._decoder = msgspec.json.Decoder(incoming)
        self._reader = FrameReader()
        self._ready: list[bytes] = []

    def send(self, message: msgspec.Struct) -> None:
        """Raises: WireError when the other side is gone."""
        try:
            self._sock.sendall(encode(message))
        except OSError as error:
            raise WireError(f"peer gone: {error}") from error

    def receive(self) -> Incoming:
        """The next message. Raises: WireError on end of stream, time-out, or a frame that does not decode."""
        while not self._ready:
            try:
                data = self._sock.recv(65536)
            except OSError as error:
                raise WireError(f"peer gone: {error}") from error
            if not data:
                raise WireError("peer closed the connection")
            self._ready.extend(self._reader.feed(data))
        try:
            message: Incoming = self._decoder.decode(self._ready.pop(0))
        except msgspec.MsgspecError as error:
            raise WireError(f"not a message of this protocol: {error}") from error
        return message

    def set_timeout(self, timeout_s: float | None) -> None:
        """How long `receive` waits from now on; None: for ever."""
        self._sock.settimeout(timeout_s)

    def shutdown(self) -> None:
        """End the connection; a `receive` that waits in another thread raises WireError."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._sock.close()


def connect(path: str, incoming: type[Incoming] | object, *, timeout_s: float | None = None) -> Channel[Incoming]:
    """Connect to a unix socket. Raises: OSError if nobody listens there."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        raise
    return Channel[Incoming](sock, incoming)
