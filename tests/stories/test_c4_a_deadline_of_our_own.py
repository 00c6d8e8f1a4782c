"""C4 (gunicorn 2839, 1493): a request's limit is ours; gunicorn's timeout is for a worker that hangs as a whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gshare.wire import State

from tests.agent_stand import agent_stand
from tests.replica_process import replica

LIMIT = "1s"
ENDLESS_HANDLE = """
import os

def handle(event, context):
    if event.path == "/endless":
        os.write(1, b"in the endless loop\\n")
        while True:
            pass
    return event.body
"""
ENDLESS_FORWARD = """
import os
from gshare.handler import Handler

class Endless(Handler):
    def load(self, context): ...
    def example(self): return "x"
    def decode(self, request): return request.text()
    def forward(self, items):
        if "endless" in items:
            os.write(1, b"in the endless loop\\n")
        while "endless" in items:
            pass
        return items
"""
LONG = """
import threading

def handle(event, context):
    threading.Event().wait(2.5)
    return "done"
"""


def test_a_long_request_is_answered_within_its_limit_and_a_client_may_shorten_its_own() -> None:
    with replica(LONG, {"exec_timeout": "60s", "GUNICORN_CMD_ARGS": "--timeout 1"}) as it:
        it.wait_ready()
        shortened = it.call("/", "x", headers={"X-Timeout": "50ms"})
        nonsense = it.call("/", "x", headers={"X-Timeout": "5 minutes"})
        whole = it.call("/", "x")

    assert shortened.status == 504
    assert shortened.json()["error"]["message"] == "the function gave no answer within 0.05 s (X-Timeout: 50ms)"
    assert nonsense.status == 400
    assert "X-Timeout: '5 minutes'" in nonsense.json()["error"]["message"]
    assert whole.status == 200, "longer than gunicorn's timeout, and no process was replaced for the others"


def test_an_endless_handler_is_504_at_its_limit_its_process_is_replaced_and_others_are_unharmed() -> None:
    env = {"exec_timeout": LIMIT}
    with agent_stand() as agent, replica(ENDLESS_HANDLE, env | {"GSHARE_NODE_SOCKET": str(agent.path)}) as it:
        it.wait_ready()
        with ThreadPoolExecutor(1) as pool:
            endless = pool.submit(it.call, "/endless", "x")
            it.wait_for_log("in the endless loop")
            beside = it.call("/", "beside")
            late = endless.result()
        failed = agent.wait_for(State, lambda state: state.state == "failed")
        code = it.wait()

    assert (late.status, late.json()["error"]["code"]) == (504, "deadline_exceeded")
    assert late.json()["error"]["message"] == "the function gave no answer within 1 s (exec_timeout=1s)"
    assert (beside.status, beside.body) == (200, b"beside")
    assert failed.reason == "its process is replaced: a call went on for 1 s beyond its limit of 1 s"
    assert code == 1, "not 0: what watches it has to start it again"


def test_a_model_that_hangs_answers_504_to_whoever_waits_for_it_and_ends() -> None:
    with replica(ENDLESS_FORWARD, {"exec_timeout": LIMIT, "GSHARE_MAX_BATCH": "1"}) as it:
        it.wait_ready()
        with ThreadPoolExecutor(3) as pool:
            endless = pool.submit(it.call, "/", "endless")
            it.wait_for_log("in the endless loop")
            behind = list(pool.map(lambda _: it.call("/", "behind it"), range(2)))
            answers = [endless.result(), *behind]
        code = it.wait()

    assert [answer.status for answer in answers] == [504, 504, 504]
    assert code == 1
