"""Steps that the stories on a node agent share: real replicas on one core, without gateway and loop."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from gshare.share import Kind
from gshare.wire import LiveConfig

from gateway_plugin.agent_protocol import Done, ListReplicas, Replicas, StartReplica
from gateway_plugin.model import Place, ReplicaSpec, ReplicaState, ReplicaStatus
from tests.agent_process import PATIENCE_S, AgentProcess
from tests.unix_http import UnixConnection

FENCE = 1
ONE_CORE = "cpu:{0}-{0}".format(min(os.sched_getaffinity(0)))
"""GSHARE_DEVICES for one device of one core."""
STEADY_S = 0.02
STEADY = f"""
import time
from gshare.handler import Handler


class Steady(Handler):
    def load(self, context):
        pass

    def example(self):
        return b"x"

    def decode(self, request):
        return request.body

    def forward(self, items):
        time.sleep({STEADY_S})  # holds its units for a known time, however busy the machine is
        return items
"""


def start(
    agent: AgentProcess, name: str, *, live: LiveConfig, handler: str = STEADY, files: Mapping[str, str] | None = None
) -> None:
    """A replica `name` of function `name` on the device's first core; `wait_ready` waits for it."""
    package = agent.paths.code / name / "function"
    package.mkdir(parents=True)
    for file, text in ({"handler.py": handler} | dict(files or {})).items():
        (package / file).write_text(text)
    spec = ReplicaSpec(
        id=name,
        function=f"{name}.openfaas-fn",
        revision="r",
        code_digest=name,
        slot=0,
        kind=Kind.PINNED,
        place=Place("cpu:0", (0,)),
        live=live,
    )
    agent.ask(StartReplica(FENCE, spec), Done)


def status(agent: AgentProcess, name: str) -> ReplicaStatus:
    replicas = agent.ask(ListReplicas(), Replicas).replicas
    return next(one for one in replicas if one.spec.id == name)


def wait_ready(agent: AgentProcess, *names: str) -> None:
    wait(agent, lambda: all(status(agent, name).state is ReplicaState.READY for name in names))


def wait(agent: AgentProcess, condition: Callable[[], object]) -> None:
    """Until the condition holds; the agent's log is shown if it never does."""
    until_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until_s, agent.log()
        time.sleep(0.02)


@contextmanager
def called(agent: AgentProcess, name: str, *, threads: int, pause_s: float = 0.0) -> Iterator[None]:
    """A replica called by several threads, each so long after its last answer, for the length of the block."""
    stop = threading.Event()

    def call() -> None:
        client = UnixConnection(agent.paths.replica_http(name))
        while not stop.wait(pause_s):
            assert client.call("/", "x").status == 200
        client.close()

    with ThreadPoolExecutor(threads) as pool:
        calls = [pool.submit(call) for _ in range(threads)]
        try:
            yield
        finally:
            stop.set()
        for one in calls:
            one.result(PATIENCE_S)
