"""A closed-loop HTTP load: so many clients, each sending its next request when it has the answer to the last.

It runs as threads of one Python process beside what it measures: rates are lower bounds, the same for all sides.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from dataclasses import dataclass

from bench.figures import BenchError

TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where one side's requests go: TCP on loopback, or a unix socket."""

    host: str = "127.0.0.1"
    port: int = 0
    unix_path: str = ""
    prefix: str = ""
    """What every path begins with here."""

    def __str__(self) -> str:
        where = f"unix:{self.unix_path}" if self.unix_path else f"http://{self.host}:{self.port}"
        return where + self.prefix

    def connect(self) -> http.client.HTTPConnection:
        """A connection that is opened by its first request."""
        if self.unix_path:
            return _UnixConnection(self.unix_path)
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)


@dataclass(frozen=True, slots=True)
class Call:
    """What is sent, every time the same."""

    method: str
    path: str
    body: bytes | None = None
    content_type: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """One measurement."""

    latencies_s: tuple[float, ...]
    """From before the request is written to after its answer is read."""
    duration_s: float
    """From the first request to the end of the last."""

    @property
    def requests_per_s(self) -> float:
        return len(self.latencies_s) / self.duration_s


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=TIMEOUT_S)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class _Client(threading.Thread):
    """One client; what it cannot use it keeps as `error`, since a thread cannot raise to its starter."""

    def __init__(self, target: Target, call: Call, *, requests: int, until_s: float) -> None:
        super().__init__(daemon=True)
        self._target, self._call, self._requests, self._until_s = target, call, requests, until_s
        self.latencies_s: list[float] = []
        self.error: BenchError | None = None

    def run(self) -> None:
        connection = self._target.connect()
        try:
            while len(self.latencies_s) < self._requests and time.monotonic() < self._until_s:
                self.latencies_s.append(request_once(connection, self._target, call=self._call))
        except BenchError as error:
            self.error = error
        finally:
            connection.close()


def request_once(connection: http.client.HTTPConnection, target: Target, *, call: Call) -> float:
    """Seconds that one call took. Raises: BenchError on anything but a 2xx answer."""
    headers = {"Content-Type": call.content_type} if call.content_type else {}
    begin = time.perf_counter()
    try:
        connection.request(call.method, target.prefix + call.path, call.body, headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise BenchError(f"{target}{call.path}: no answer: {error!r}") from error
    if not 200 <= answer.status < 300:
        raise BenchError(f"{target}{call.path}: {answer.status} {body[:200].decode(errors='replace')}")
    return time.perf_counter() - begin


def closed_loop(target: Target, call: Call, *, clients: int, max_requests: int, run_s: float) -> Measured:
    """Load `target` until `max_requests` are done or `run_s` is over. Raises: BenchError on a failed request."""
    begin = time.monotonic()
    each = max(1, max_requests // clients)
    threads = [_Client(target, call, requests=each, until_s=begin + run_s) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    duration_s = time.monotonic() - begin
    for thread in threads:
        if thread.error:
            raise thread.error
    return Measured(tuple(latency for thread in threads for latency in thread.latencies_s), duration_s)
