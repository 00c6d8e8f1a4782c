"""Plain HTTP as recorded clients speak it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class HttpClient:
    """A new connection for each call, as faas-cli makes them."""

    def __init__(self, port: int) -> None:
        self.port = port

    def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        chunked: bool = False,
    ) -> Answer:
        """`body`: JSON to send, with its length or in chunks; None: no body."""
        data = None if body is None else json.dumps(body).encode()
        sent = {"Host": f"127.0.0.1:{self.port}", **(headers or {})}
        if data is not None and chunked:
            sent["Transfer-Encoding"] = "chunked"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        try:
            content: Any = _pieces(data) if data is not None and chunked else data
            connection.request(method, path, body=content, headers=sent, encode_chunked=chunked)
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())
        finally:
            connection.close()


def _pieces(data: bytes) -> Iterator[bytes]:
    middle = len(data) // 2
    yield data[:middle]
    yield data[middle:]
