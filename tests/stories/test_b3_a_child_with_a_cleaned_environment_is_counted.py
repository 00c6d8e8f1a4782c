"""B3: a child process with a cleaned environment gets no lease of its own, and what it computes is counted."""

from __future__ import annotations

from pathlib import Path

from gshare.wire import LiveConfig

from gateway_plugin.processes import read_stat
from tests.agent_process import agent_process
from tests.stories.on_an_agent import ONE_CORE, start, status, wait, wait_ready
from tests.unix_http import call

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
for _ in range(7):  # so many at replicas' niceness get time also where the core is busy with something else
    if not os.fork():
        break
while Path(folder).exists():
    sum(range(100_000))
"""


def test_a_daemon_with_an_empty_environment_gets_no_token_and_its_use_is_an_event(tmp_path: Path) -> None:
    with agent_process(GSHARE_DEVICES=ONE_CORE) as agent:
        folder = tmp_path / "of-the-child"
        folder.mkdir()
        start(agent, "f", live=LiveConfig(quota_request=0.5), handler=HANDLER, files={"child.py": CHILD})
        wait_ready(agent, "f")
        before = status(agent, "f")

        assert call(agent.paths.replica_http("f"), "/", str(folder)).status == 200
        try:
            wait(agent, lambda: status(agent, "f").ungated_device_use)

            assert (folder / "guessed").read_text() == "refused: wrong credential"
            assert "one token a replica" in (folder / "own").read_text()
            daemon = read_stat(int((folder / "pid").read_text()))
            assert daemon is not None
            assert daemon.session != before.pid
            assert daemon.parent == before.pid, "the replica's first process adopted it"
            assert not before.ungated_device_use
            assert [entry.tokens for ledger in agent.ledgers() for entry in ledger.entries] == [0]
            assert "f: ungated_device_use: " in agent.log()
        finally:
            _end(folder)


def _end(folder: Path) -> None:
    """The child runs until its folder is gone."""
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
