"""A16 (of-watchdog 111, 52): with a limit of 1 there is never more than one request inside the model."""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import Any

import pytest
from flask.testing import FlaskClient
from gshare.server import runtime_of
from werkzeug.test import TestResponse

from tests.served_app import served

PARALLEL = 20
LIMIT_S = 60.0
COUNTING = """
import threading
from gshare.handler import Handler

free = threading.Event()
inside = most_inside = 0

class Counting(Handler):
    def load(self, context): ...
    def example(self): return 0
    def decode(self, request): return request.json(int)

    def forward(self, items):
        global inside, most_inside
        inside += len(items)
        most_inside = max(most_inside, inside)
        if items != [0]:  # not the warm-up
            free.wait(60)
        inside -= len(items)
        return items
"""
HANDLE = """
import threading

free = threading.Event()
lock = threading.Lock()
inside = most_inside = 0

def handle(event, context):
    global inside, most_inside
    with lock:
        inside += 1
        most_inside = max(most_inside, inside)
    free.wait(60)
    with lock:
        inside -= 1
    return event.body
"""


def handler() -> Any:
    """The module of the function that was loaded last."""
    return sys.modules["function.handler"]


def post(client: FlaskClient, number: int) -> TestResponse:
    return client.application.test_client().post("/", data=str(number))


def answers(client: FlaskClient, pool: ThreadPoolExecutor) -> list[Future[TestResponse]]:
    return [pool.submit(post, client, number) for number in range(1, PARALLEL + 1)]


@pytest.mark.parametrize("function", [COUNTING, HANDLE], ids=["model", "handle"])
def test_with_a_limit_of_1_one_of_20_is_inside_and_the_others_are_told_to_come_again(function: str) -> None:
    with served(function, {"GSHARE_MAX_INFLIGHT": "1"}) as client, ThreadPoolExecutor(PARALLEL) as pool:
        calls = answers(client, pool)
        refused = [call.result() for _, call in zip(range(PARALLEL - 1), as_completed(calls, LIMIT_S), strict=False)]
        handler().free.set()
        statuses = Counter(call.result(LIMIT_S).status_code for call in calls)
        most_inside = handler().most_inside

    assert statuses == {200: 1, 429: PARALLEL - 1}
    assert most_inside == 1
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
    assert {answer.get_json()["error"]["code"] for answer in refused} == {"overloaded"}


@pytest.mark.parametrize("function", [COUNTING, HANDLE], ids=["model", "handle"])
def test_by_setting_they_queue_and_still_go_in_one_by_one(function: str) -> None:
    env = {"GSHARE_MAX_INFLIGHT": "1", "GSHARE_MAX_QUEUED": str(PARALLEL - 1)}
    with served(function, env) as client, ThreadPoolExecutor(PARALLEL) as pool:
        calls = answers(client, pool)
        handler().free.set()
        statuses = Counter(call.result(LIMIT_S).status_code for call in calls)
        most_inside = handler().most_inside

    assert statuses == {200: PARALLEL}
    assert most_inside == 1


def test_a_batching_model_never_holds_more_items_than_requests_are_let_in() -> None:
    env = {"GSHARE_MAX_INFLIGHT": "3", "GSHARE_MAX_QUEUED": "17", "GSHARE_MAX_BATCH": "8"}
    with served(COUNTING, env) as client, ThreadPoolExecutor(PARALLEL) as pool:
        calls = answers(client, pool)
        handler().free.set()
        statuses = Counter(call.result(LIMIT_S).status_code for call in calls)
        most_inside = handler().most_inside

    assert statuses == {200: PARALLEL}
    assert most_inside <= 3


def test_a_request_that_was_given_up_still_counts_as_inside() -> None:
    with served(HANDLE, {"GSHARE_MAX_INFLIGHT": "1"}) as client:
        given_up = client.post("/", data="1", headers={"X-Timeout": "20ms"})
        refused = client.post("/", data="2")
        not_ready = client.get("/_/ready")
        handler().free.set()
        runtime_of(client.application).calls._pool.shutdown(wait=True)
        ready = client.get("/_/ready")
        most_inside = handler().most_inside

    assert (given_up.status_code, refused.status_code, not_ready.status_code) == (504, 429, 429)
    assert ready.status_code == 200
    assert most_inside == 1
