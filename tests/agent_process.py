"""A node agent for tests: the real one, as a process in a folder of its own, asked over its admin socket."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gshare.wire import Channel, Message, WireError, connect

from gateway_plugin.agent_protocol import AskLedgers, Ledgers, Reply
from gateway_plugin.ledger import Ledger
from gateway_plugin.paths import Paths
from gateway_plugin.processes import python_command
from gateway_plugin.settings import Settings

PATIENCE_S = 60.0
ROOT = Path(__file__).parent.parent
AnswerT = TypeVar("AnswerT", bound=Message)


class AgentProcess:
    """One agent, with this machine's cores as its device."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self.settings = Settings.from_env({"GSHARE_HOME": str(folder), **settings})
        self.paths = Paths(self.settings.home)
        self.paths.create()
        self.begin()

    def begin(self) -> None:
        """Returns once it answers and its schedulers do."""
        environment = os.environ | self.environment() | self.settings.to_env()
        with (self.paths.logs / "agent.log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), env=environment, cwd=ROOT, stdout=log, stderr=log)
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._answers():
            assert time.monotonic() < deadline_s and self.process.poll() is None, self.log()
            time.sleep(0.02)

    def command(self) -> list[str]:
        return python_command("process", "agent")

    def environment(self) -> dict[str, str]:
        """What it gets besides this process's environment and its settings."""
        return {}

    def connect(self) -> Channel[Reply]:
        return connect(str(self.paths.agent_socket), Reply, timeout_s=PATIENCE_S)

    def ask(self, request: Message, answer: type[AnswerT]) -> AnswerT:
        """The answer over a connection of its own."""
        channel = self.connect()
        try:
            channel.send(request)
            reply = channel.receive()
        finally:
            channel.close()
        assert isinstance(reply, answer), reply
        return reply

    def ledgers(self) -> tuple[Ledger, ...]:
        return self.ask(AskLedgers(), Ledgers).ledgers

    def log(self) -> str:
        return (self.paths.logs / "agent.log").read_text()

    def kill(self) -> None:
        """As a crash does; its schedulers live on."""
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """End it in good order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(PATIENCE_S)

    def _answers(self) -> bool:
        try:
            return all(ledger.at_s > 0 for ledger in self.ledgers())
        except (OSError, WireError):
            return False


@contextmanager
def agent_process(**settings: str) -> Iterator[AgentProcess]:
    """An agent for the length of the block."""
    folder = Path(tempfile.mkdtemp(prefix="gs"))
    agent = AgentProcess(folder, **settings)
    try:
        yield agent
    finally:
        agent.close()
        shutil.rmtree(folder)
