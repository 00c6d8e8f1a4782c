"""A real replica for tests: gunicorn with the template's own files and a function of the test's, on a unix socket.

`wait_ready` returns when it serves and fails at once, with the process' log, when it cannot.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gshare

from tests.unix_http import Answer, UnixConnection, call

TEMPLATE = Path(gshare.__file__).parent.parent
READY_LINE = "gshare.runtime: ready"
FAILED_LINE = "gshare.runtime: failed"
START_LIMIT_S = 120.0


class ReplicaProcess:
    """One running replica."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.folder = folder
        self.socket = folder / "http.sock"
        self._lines: list[str] = []
        self._changed = threading.Condition()
        self._ended = False
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gunicorn", "--config", str(TEMPLATE / "gunicorn.conf.py"), "index:app"],
            cwd=folder,
            env=self._environment(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=self._read_log, daemon=True).start()

    @property
    def log(self) -> str:
        """Everything it has printed so far."""
        return "".join(self._lines)

    def wait_for_log(self, *texts: str, timeout_s: float = START_LIMIT_S) -> str:
        """Wait until one of `texts` was printed and return it; fails with the log if the process ends before."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._seen(texts), timeout_s)
            found = self._seen(texts)
        assert found is not None, f"never printed {' or '.join(texts)}; its log:\n{self.log}"
        return found

    def wait_ready(self, *, timeout_s: float = START_LIMIT_S) -> None:
        """Wait until it is ready; fails with its log if loading fails or the process ends."""
        found = self.wait_for_log(READY_LINE, FAILED_LINE, timeout_s=timeout_s)
        assert found == READY_LINE, f"the replica failed to load; its log:\n{self.log}"

    def call(
        self, path: str = "/", body: Any = None, *, method: str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """One request on a connection of its own."""
        return call(self.socket, path, body, method=method, headers=headers)

    def connect(self) -> UnixConnection:
        """A connection to keep."""
        return UnixConnection(self.socket)

    def status(self) -> dict[str, Any]:
        """Its `/_/status`."""
        status: dict[str, Any] = self.call("/_/status").json()
        return status

    def terminate(self) -> None:
        """SIGTERM; see `wait`."""
        self.process.send_signal(signal.SIGTERM)

    def wait(self, *, timeout_s: float = 60.0) -> int:
        """The exit code once it has ended."""
        return self.process.wait(timeout_s)

    def kill(self) -> None:
        """End it whatever it does."""
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        with self._changed:
            self._changed.wait_for(lambda: self._ended, 10)
        self.process.stdout.close()

    def _environment(self, env: Mapping[str, str]) -> dict[str, str]:
        inherited = {key: text for key, text in os.environ.items() if not key.startswith("GSHARE_")}
        own = {
            "GSHARE_FUNCTION": "tested.openfaas-fn",
            "GSHARE_BIND": f"unix:{self.socket}",
            "GSHARE_WEIGHTS_CACHE": str(self.folder / "weights-cache"),
            "PYTHONPATH": os.pathsep.join((str(self.folder / "code"), str(TEMPLATE))),
            "PYTHONUNBUFFERED": "1",
            "HF_HUB_OFFLINE": "1",
        }
        return inherited | own | dict(env)

    def _seen(self, texts: tuple[str, ...]) -> str | None:
        return next((text for line in self._lines for text in texts if text in line), None)

    def _read_log(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self._lines.append(line)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


@contextmanager
def replica(function: str | Path, env: Mapping[str, str] | None = None) -> Iterator[ReplicaProcess]:
    """A replica of `function`: the text of a handler.py, or a function's folder. Not ready yet; ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="gshare-replica-"))  # short: a socket's name must fit into 107 bytes
    code = folder / "code" / "function"
    if isinstance(function, Path):
        shutil.copytree(function, code, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        code.mkdir(parents=True)
        (code / "handler.py").write_text(function)
    process = ReplicaProcess(folder, env or {})
    try:
        yield process
    finally:
        process.kill()
        shutil.rmtree(folder)
