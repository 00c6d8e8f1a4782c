"""A13 (openfaas/templates 205): a body is bytes; text is read by its charset; what is no text is the client's fault."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from tests.replica_process import ReplicaProcess, replica

ECHO = """
import gshare.errors

def handle(event, context):
    return event.body, 200, {"Content-Type": event.headers.get("Content-Type", "application/octet-stream")}
"""
READER = """
from gshare.handler import Handler

class Reader(Handler):
    def load(self, context): ...
    def example(self): return ""
    def decode(self, request):
        return request.json(list[str])[0] if request.content_type == "application/json" else request.text()
    def forward(self, items): return [item.upper() for item in items]
    def encode(self, output, request): return {"text": output}
"""


@pytest.fixture(scope="module")
def reader() -> Iterator[ReplicaProcess]:
    with replica(READER) as it:
        it.wait_ready()
        yield it


def test_all_256_byte_values_reach_the_function_and_come_back() -> None:
    every_byte = bytes(range(256)) * 1000
    with replica(ECHO) as it:
        it.wait_ready()
        answer = it.call("/", every_byte, headers={"Content-Type": "audio/wav"})

    assert answer.status == 200
    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(every_byte).digest()


def test_text_is_read_by_the_charset_of_its_content_type(reader: ReplicaProcess) -> None:
    latin = reader.call("/", b"caf\xe9", headers={"Content-Type": "text/plain; charset=latin-1"})
    unicode = reader.call("/", "café".encode(), headers={"Content-Type": "text/plain"})

    assert latin.json() == unicode.json() == {"text": "CAFÉ"}


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b'["\xe9"]', "application/json"),
        (b"\xe9", "text/plain"),
        (b"x", "text/plain; charset=klingon"),
        (b"x", "text/plain; charset=zlib"),
    ],
)
def test_bytes_that_are_not_of_their_charset_are_400_and_the_next_request_is_served(
    reader: ReplicaProcess, body: bytes, content_type: str
) -> None:
    refused = reader.call("/", body, headers={"Content-Type": content_type})

    assert (refused.status, refused.json()["error"]["code"]) == (400, "bad_input")
    assert reader.call("/", b"ok", headers={"Content-Type": "text/plain"}).json() == {"text": "OK"}
