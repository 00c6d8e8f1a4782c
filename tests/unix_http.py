"""HTTP over a unix socket, for tests: one call, or a connection that is kept."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """One response, read to its end."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        return next((text for key, text in self.headers if key.lower() == name.lower()), None)

    def json(self) -> Any:
        return json.loads(self.body)


class UnixConnection(http.client.HTTPConnection):
    """Speaks HTTP/1.1 to a unix socket."""

    def __init__(self, path: Path, *, timeout_s: float = 60.0) -> None:
        super().__init__("replica", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))

    def call(
        self, path: str = "/", body: Any = None, *, method: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One exchange; bytes and text go as they are, an iterable of bytes goes chunked.

        As curl and requests do, an answer is read that came before the server had taken the whole body.
        """
        with suppress(BrokenPipeError):
            self.request(method or ("GET" if body is None else "POST"), path, body, dict(headers or {}))
        response = self.getresponse()
        return Answer(response.status, tuple(response.getheaders()), response.read())


def call(
    socket_path: Path,
    path: str = "/",
    body: Any = None,
    *,
    method: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """One exchange on a connection of its own."""
    connection = UnixConnection(socket_path)
    try:
        return connection.call(path, body, method=method, headers=headers)
    finally:
        connection.close()
