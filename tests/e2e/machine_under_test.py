"""A whole machine for a test: its own home, port and functions; started by the `gshare` command, as a user does."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
import yaml

from gateway_plugin import client, machine
from gateway_plugin.errors import PluginError
from gateway_plugin.openfaas.gshare_views import GshareFunctionView
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.supervisor.lock import holder

POLL_S = 0.02
PATIENCE_S = 90.0
ECHO = """
import os

VERSION = "one"


def handle(event, context):
    setting = os.environ.get("SETTING", "")
    return {"body": {"version": VERSION, "setting": setting, "pid": os.getpid(), "size": len(event.body)}}
"""


class MachineUnderTest:
    """Everything under one folder; `close` stops what is left."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.folder = folder
        self.functions = folder / "functions"
        self.functions.mkdir(parents=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        own = {
            "GSHARE_HOME": str(folder / "home"),
            "GSHARE_PORT": str(self.port),
            "GSHARE_FUNCTIONS_PATH": str(self.functions),
            "GSHARE_WEIGHTS_ROOT": str(folder / "weights"),
            "GSHARE_TICK_S": "0.2",
            "GSHARE_BACKOFF_MAX_S": "2",
        }
        clean = {key: value for key, value in os.environ.items() if not key.startswith("GSHARE_")}
        self.env = clean | own | settings
        self.settings = Settings.from_env({key: value for key, value in self.env.items() if key.startswith("GSHARE_")})
        self.paths = Paths(self.settings.home)

    def write_function(self, name: str, handler: str) -> None:
        """Its folder, with this text as handler.py."""
        (self.functions / name).mkdir(exist_ok=True)
        (self.functions / name / "handler.py").write_text(handler)

    def write_stack(self, **functions: dict[str, Any]) -> Path:
        """stack.yml with these entries; `image` is the function's name unless given."""
        entries = {name: {"image": name, "skip_build": True} | entry for name, entry in functions.items()}
        path = self.folder / "stack.yml"
        path.write_text(
            yaml.safe_dump({"version": 1.0, "provider": {"name": "openfaas"}, "functions": entries}, sort_keys=False)
        )
        return path

    def gshare(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run the command in the machine's folder."""
        command = [sys.executable, "-m", "gateway_plugin.cli", *arguments]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )

    def up(self, *arguments: str) -> str:
        """`gshare up`, which must succeed; returns what it printed."""
        done = self.gshare("up", *arguments)
        assert done.returncode == 0, done.stdout + self.logs()
        return done.stdout

    def deploy(self) -> None:
        done = self.gshare("deploy", "-f", "stack.yml")
        assert done.returncode == 0, done.stdout

    def post(self, name: str, body: bytes = b"x", **headers: str) -> requests.Response:
        return requests.post(f"{self.url}/function/{name}", data=body, headers=headers, timeout=PATIENCE_S)

    def view(self, name: str) -> GshareFunctionView:
        return next(one for one in client.functions(self.url) if one.name.startswith(f"{name}."))

    def replica_status(self, name: str) -> dict[str, Any]:
        """`/_/status` of the function's only replica."""
        answer = requests.get(f"{self.url}/function/{name}/_/status", timeout=PATIENCE_S)
        status: dict[str, Any] = answer.json()
        return status

    def settled(self, name: str, *, replicas: int = 1) -> bool:
        """Whether exactly that many replicas of the wanted revision are ready, and no others are left."""
        view = self.view(name)
        fresh = [one for one in view.replicas if one.state == "ready" and one.revision == view.revision]
        return view.ready == len(fresh) == len(view.replicas) == replicas

    def process_pids(self) -> dict[str, int]:
        running = machine.processes(self.paths)
        return {one.name: one.pid for one in running.processes} if running else {}

    def supervisor_pid(self) -> int:
        supervisor = holder(self.paths.supervisor_lock)
        assert supervisor is not None
        return supervisor.pid

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Until the condition holds; the logs are shown if it does not in time."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if condition():
                    return
            except (requests.RequestException, PluginError, StopIteration):
                pass  # the machine is being hurt on purpose; ask again
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:.0f} s\n{self.logs()}"
            time.sleep(POLL_S)

    def logs(self) -> str:
        return self.gshare("logs", "-n", "30").stdout

    def close(self) -> None:
        self.gshare("down")
