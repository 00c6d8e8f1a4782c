"""B3: a child process with a cleaned environment gets no lease of its own, and what it computes is counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from gateway_plugin.agent_protocol import Done, ListReplicas, Replicas, StartReplica
from gateway_plugin.model import Place, ReplicaSpec, ReplicaState, ReplicaStatus
from tests.agent_process import PATIENCE_S, AgentProcess, agent_process
from tests.unix_http import call

SPEC = ReplicaSpec(
    id="f-1", function="f.openfaas-fn", revision="r", code_digest="code", slot=0, place=Place("cpu:0", (0,))
)
HANDLER = """
import os, subprocess, sys
from pathlib import Path

CHILD = Path(__file__).with_name("child.py")


def handle(event, context):
    arguments = [os.environ["GSHARE_TOKEN_SOCKET"], os.environ["GSHARE_CREDENTIAL"], event.body.decode()]
    subprocess.Popen([sys.executable, str(CHILD), *arguments], env={}, start_new_session=True, close_fds=True)
    return "started"
"""
CHILD = """
import os, sys
from pathlib import Path

path, credential, folder = sys.argv[1:]
if os.fork():
    os._exit(0)  # from here on it is nobody's child, in a session of its own, with an empty environment
from gshare.token_link import TokenLink
from gshare.wire import WireError

for name, secret in (("guessed", "0" * 32), ("own", credential)):
    try:
        TokenLink.open(path, secret, used_s=0.0, timeout_s=30.0)
        answer = "welcome"
    except WireError as error:
        answer = str(error)
    (Path(folder) / name).write_text(answer)
(Path(folder) / "pid").write_text(str(os.getpid()))
while Path(folder).exists():
    sum(range(100_000))
"""


def test_a_daemon_with_an_empty_environment_gets_no_token_and_its_use_is_an_event(tmp_path: Path) -> None:
    with agent_process(GSHARE_DEVICES="cpu:0-0") as agent:
        folder = tmp_path / "of-the-child"
        folder.mkdir()
        _write_code(agent)
        assert agent.ask(StartReplica(1, SPEC), Done)
        _wait(lambda: _status(agent).state is ReplicaState.READY, agent)
        before = _status(agent)

        assert call(agent.paths.replica_http(SPEC.id), "/", str(folder)).status == 200
        try:
            _wait(lambda: _status(agent).ungated_device_use, agent)

            assert (folder / "guessed").read_text() == "refused: wrong credential"
            assert "one token a replica" in (folder / "own").read_text()
            assert os.getsid(int((folder / "pid").read_text())) != before.pid
            assert not before.ungated_device_use
            assert [entry.tokens for ledger in agent.ledgers() for entry in ledger.entries] == [0]
            assert "f-1: ungated_device_use: " in agent.log()
        finally:
            _end(folder)
        _wait(lambda: not _status(agent).ungated_device_use, agent)


def _write_code(agent: AgentProcess) -> None:
    package = agent.paths.code / SPEC.code_digest / "function"
    package.mkdir(parents=True)
    (package / "handler.py").write_text(HANDLER)
    (package / "child.py").write_text(CHILD)


def _status(agent: AgentProcess) -> ReplicaStatus:
    (status,) = agent.ask(ListReplicas(), Replicas).replicas
    return status


def _wait(condition: Callable[[], object], agent: AgentProcess) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, agent.log()
        time.sleep(0.02)


def _end(folder: Path) -> None:
    """The child runs until its folder is gone."""
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
