"""The control API as it runs in production: its own process, gunicorn, a kept listener, a real Redis."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway_plugin.listeners import listen_tcp
from gateway_plugin.paths import Paths
from gateway_plugin.processes import python_command
from gateway_plugin.store import Store
from tests.contract.http_client import HttpClient

STOP_TIMEOUT_S = 30.0


@pytest.fixture(scope="package")
def functions() -> Iterator[Path]:
    """The root in which the API looks for functions' folders."""
    # Short, since unix sockets lie in its home.
    folder = Path(tempfile.mkdtemp(prefix="gshare-api-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="package")
def api_process(functions: Path, redis_server_url: str) -> Iterator[HttpClient]:
    """A running API; its port queues connections from the first moment, so there is nothing to wait for."""
    home = functions / ".home"
    Paths(home).create()
    listener = listen_tcp("127.0.0.1", 0)
    env = dict(os.environ) | {
        "GSHARE_HOME": str(home),
        "GSHARE_REDIS_URL": redis_server_url,
        "GSHARE_FUNCTIONS_PATH": str(functions),
    }
    argv = python_command("process", "api", "--listen-fd", str(listener.fileno()))
    with (home / "api.log").open("wb") as log:
        process = subprocess.Popen(argv, env=env, pass_fds=[listener.fileno()], stdout=log, stderr=log)
    try:
        yield HttpClient(listener.getsockname()[1])
    finally:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
        listener.close()


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store(redis_url)


@pytest.fixture
def api(api_process: HttpClient, functions: Path, redis_url: str) -> HttpClient:
    """The API over an empty Redis, with the code of the functions that the recordings name."""
    for name in ("resnet", "echo", "cold"):
        (functions / name).mkdir(exist_ok=True)
        (functions / name / "handler.py").write_text(f"NAME = {name!r}\n")
    return api_process
