"""One connection to a token scheduler: frames both ways, without ever blocking for longer than asked."""

from __future__ import annotations

import select
import socket
import time
from collections import deque

import msgspec

from gshare.token_wire import TO_HOLDER, Grant, Ping, ToHolder, TokenHello, TokenRefused, TokenWelcome
from gshare.wire import FrameReader, WireError, encode

SPIN_S = 0.0001
"""An answer is mostly there within this time; a thread that slept would have to be given a core again first."""
PING_S = 1.0
"""How long to wait in silence before asking whether the scheduler is there."""
SILENCE_S = 3.0
"""After so long without any answer it is not."""


class TokenLink:
    """Sends and receives this conversation's messages. One thread reads at a time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._reader = FrameReader()
        self._bodies: deque[bytes] = deque()
        self._poller = select.poll()
        self._poller.register(sock, select.POLLIN)

    @classmethod
    def open(cls, path: str, credential: str, *, used_s: float, timeout_s: float) -> tuple[TokenLink, TokenWelcome]:
        """Connect and be welcomed. Raises: OSError: nobody listens. WireError: refused, or no answer in time."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(timeout_s)
        try:
            sock.connect(path)
            link = cls(sock)
            link.send(TokenHello(credential, used_s))
            answer = link.receive(timeout_s)
            if isinstance(answer, TokenWelcome):
                return link, answer
            raise WireError(f"refused: {answer.reason}" if isinstance(answer, TokenRefused) else "no welcome")
        except BaseException:
            sock.close()
            raise

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, message: msgspec.Struct) -> None:
        """Raises: WireError when the other side is gone, or reads nothing."""
        frame = encode(message)
        try:
            if self._sock.send(frame) != len(frame):
                raise WireError("the scheduler does not read")
        except OSError as error:
            raise WireError(f"peer gone: {error}") from error

    def receive(self, timeout_s: float) -> ToHolder | None:
        """The next message; None if none came in time. Raises: WireError at the end of the stream or for garbage."""
        until_s = time.monotonic() + timeout_s
        while not self._bodies:
            data = self._read()
            if data is not None:
                self._bodies.extend(self._reader.feed(data))
                continue
            remaining_s = until_s - time.monotonic()
            if remaining_s <= 0:
                return None
            self._poller.poll(1000 * remaining_s + 1)
        try:
            return TO_HOLDER.decode(self._bodies.popleft())
        except msgspec.MsgspecError as error:
            raise WireError(f"not a message of this protocol: {error}") from error

    def wait_for_grant(self) -> Grant:
        """The next grant, however long it takes. Raises: WireError when the scheduler is gone, or silent."""
        heard_s = time.monotonic()
        message = self._spin(heard_s + SPIN_S)
        while not isinstance(message, Grant):
            now_s = time.monotonic()
            if message is not None:
                heard_s = now_s
            elif now_s - heard_s > SILENCE_S:
                raise WireError(f"no answer for {SILENCE_S:g} s")
            elif now_s - heard_s >= PING_S:
                self.send(Ping())
            message = self.receive(PING_S)
        return message

    def _spin(self, until_s: float) -> ToHolder | None:
        while True:
            message = self.receive(0)
            if message is not None or time.monotonic() > until_s:
                return message

    def ended(self) -> bool:
        """Whether the other side has closed; reads nothing."""
        try:
            return self._sock.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    def shutdown(self) -> None:
        """End the conversation; whoever reads sees it."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return

    def close(self) -> None:
        self._sock.close()

    def _read(self) -> bytes | None:
        try:
            data = self._sock.recv(65536)
        except BlockingIOError:
            return None
        except OSError as error:
            raise WireError(f"peer gone: {error}") from error
        if not data:
            raise WireError("the scheduler closed the connection")
        return data
