"""One connection of the scheduler: frames in, frames out, and no patience with peers that misbehave."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

import msgspec
from gshare.wire import MAX_FRAME_BYTES, FrameReader, WireError, encode

READ_BYTES = 16384
FRAMES_PER_S = 20_000
"""A peer that sends more floods; an honest one sends two or three for each block of work."""


class Connection:
    """Hands each message to `take`, and calls `ended(reason)` once when it is over, for whatever reason."""

    def __init__(
        self,
        sock: socket.socket,
        decoder: msgspec.json.Decoder[Any],
        *,
        take: Callable[[Connection, Any], None],
        ended: Callable[[Connection, str], None],
        limit_bytes: int = MAX_FRAME_BYTES,
    ) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.opened_s = time.monotonic()
        self._decoder, self._take, self._ended = decoder, take, ended
        self._reader = FrameReader(limit_bytes)
        self._open = True
        self._second, self._frames = 0, 0

    def fileno(self) -> int:
        return self.sock.fileno()

    def read(self) -> None:
        """Take what has come."""
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:  # as a process that is killed leaves it
            data = b""
        if not data:
            self.close("")
            return
        try:
            for body in self._reader.feed(data):
                self._count()
                self._take(self, self._decoder.decode(body))
                if not self._open:
                    return
        except (WireError, ValueError) as error:  # msgspec's errors are ValueErrors, and so are the rule's
            self.close(str(error))

    def send(self, message: msgspec.Struct) -> None:
        """A peer that does not read what it is sent is hung up on."""
        if not self._open:
            return
        frame = encode(message)
        try:
            sent = self.sock.send(frame)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            self.close("")
            return
        if sent != len(frame):
            self.close("it does not read")

    def close(self, reason: str) -> None:
        if self._open:
            self._open = False
            self._ended(self, reason)
            self.sock.close()

    def _count(self) -> None:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._frames = second, 0
        self._frames += 1
        if self._frames > FRAMES_PER_S:
            raise WireError(f"more than {FRAMES_PER_S} frames in a second")


def open_connection(listener: socket.socket) -> socket.socket | None:
    """The next connection; None if it went away again."""
    try:
        return listener.accept()[0]
    except OSError:
        return None
