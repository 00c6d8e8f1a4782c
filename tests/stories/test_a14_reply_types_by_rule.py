"""A14 (python-flask-template PR 39): bytes arrive as bytes, data as strict JSON, headers all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

from tests.replica_process import ReplicaProcess, replica
from tests.unix_http import Answer

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
REPLIES = f"""
import numpy as np

PNG = {PNG!r}
REPLIES = {{
    "/png": (PNG, 200, {{"Content-Type": "image/png"}}),
    "/null": {{"a": None}},
    "/none": None,
    "/text": "é✓",
    "/status": ("made", 201),
    "/numpy": {{"f": np.float32(0.5), "i": np.int64(7), "b": np.bool_(True), "a": np.arange(3, dtype=np.uint8)}},
    "/scalar": np.float32(0.25),
    "/array": np.eye(2),
    "/cookies": {{"body": "x", "headers": [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2; Path=/")]}},
    "/nan": [float("nan")],
    "/surrogate": {{"text": chr(0xD800)}},
    "/object": object(),
}}

def handle(event, context):
    return REPLIES[event.path]
"""


@pytest.fixture(scope="module")
def replies() -> Iterator[ReplicaProcess]:
    with replica(REPLIES) as it:
        it.wait_ready()
        yield it


def strict(answer: Answer) -> object:
    """The body by a parser that takes no NaN."""
    return json.loads(answer.body, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))


def test_a_png_arrives_as_it_was_returned(replies: ReplicaProcess) -> None:
    answer = replies.call("/png")

    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(PNG).digest()
    assert answer.header("Content-Type") == "image/png"


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/null", {"a": None}),
        ("/numpy", {"f": 0.5, "i": 7, "b": True, "a": [0, 1, 2]}),
        ("/scalar", 0.25),
        ("/array", [[1.0, 0.0], [0.0, 1.0]]),
        ("/surrogate", {"text": "\ud800"}),
    ],
)
def test_data_becomes_strict_json(replies: ReplicaProcess, path: str, data: object) -> None:
    answer = replies.call(path)

    assert (answer.status, answer.header("Content-Type")) == (200, "application/json")
    assert strict(answer) == data


def test_none_is_empty_text_is_text_and_a_tuple_sets_the_status(replies: ReplicaProcess) -> None:
    none, text, made = (replies.call(path) for path in ("/none", "/text", "/status"))

    assert (none.status, none.body) == (200, b"")
    assert (text.status, text.body) == (200, "é✓".encode())
    assert (made.status, made.body) == (201, b"made")


def test_several_cookies_all_arrive(replies: ReplicaProcess) -> None:
    headers = replies.call("/cookies").headers

    assert [text for name, text in headers if name == "Set-Cookie"] == ["a=1", "b=2; Path=/"]


@pytest.mark.parametrize(("path", "code"), [("/nan", "non_finite_output"), ("/object", "model_fault")])
def test_what_json_cannot_carry_is_a_fault_with_its_reason_in_strict_json(
    replies: ReplicaProcess, path: str, code: str
) -> None:
    answer = replies.call(path)
    body = strict(answer)

    assert answer.status == 500
    assert isinstance(body, dict)
    assert body["error"]["code"] == code
