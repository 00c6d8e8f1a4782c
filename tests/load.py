"""A small open-loop load: a fixed rate from many keep-alive connections, every answer kept.

Each request is sent on its own schedule, so a stalled server does not slow the sending of others down.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one request."""

    status: int
    """0: the connection was cut or refused."""
    body: bytes
    sent_at: float
    latency_s: float
    error: str = ""


@dataclass
class Load:
    """Sends POSTs to one path until left; use as a context manager."""

    port: int
    path: str
    body: bytes = b"x"
    rate_hz: float = 50.0
    senders: int = 8
    headers: dict[str, str] = field(default_factory=dict)
    answers: list[Answer] = field(default_factory=list)

    def __enter__(self) -> Load:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send_all, args=(number,)) for number in range(self.senders)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_for(self, count: int) -> None:
        """Until that many more answers have come."""
        goal = len(self.answers) + count
        while len(self.answers) < goal:
            self._stop.wait(0.02)

    def statuses(self) -> Counter[int]:
        return Counter(answer.status for answer in self.answers)

    def failures(self) -> list[Answer]:
        return [answer for answer in self.answers if answer.status != 200]

    def _send_all(self, number: int) -> None:
        pause_s = self.senders / self.rate_hz
        due = time.monotonic() + pause_s * number / self.senders
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            due += pause_s
            self.answers.append(self._send(connection))
        connection.close()

    def _send(self, connection: http.client.HTTPConnection) -> Answer:
        begun = time.monotonic()
        try:
            connection.request("POST", self.path, body=self.body, headers=self.headers)
            reply = connection.getresponse()
            body = reply.read()
            return Answer(reply.status, body, begun, time.monotonic() - begun)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            return Answer(0, b"", begun, time.monotonic() - begun, repr(error))
