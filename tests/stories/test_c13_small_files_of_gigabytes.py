"""C13: a file of some KB unpacks to gigabytes. What it declares is checked before anything is unpacked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.pictures import encoded, photograph, png_bomb
from tests.replica_process import ReplicaProcess, replica
from tests.tiny_functions import CLASSIFIERS

RESNET = CLASSIFIERS[0]
AT_ONCE = 100
GROWTH_MAX_BYTES = 20_000_000
PAGE_BYTES = 4096


@pytest.fixture(scope="module")
def served() -> Iterator[ReplicaProcess]:
    with replica(
        RESNET.folder, {"MODEL_CONFIG": json.dumps(dict(RESNET.config)), "GSHARE_MAX_QUEUED": "200"}
    ) as process:
        process.wait_ready()
        yield process


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES


@pytest.mark.parametrize("side", [7_100, 19_000, 20_000])
def test_a_hundred_of_them_at_once_are_refused_in_bounded_memory_by_a_worker_that_lives_on(
    served: ReplicaProcess, side: int
) -> None:
    bomb, good = png_bomb(side, side), encoded(photograph())
    assert len(bomb) < 60_000
    for _ in range(8):
        served.call(body=bomb)
    pid = int(served.status()["pid"])
    before = resident_bytes(pid)

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: served.call(body=bomb), range(AT_ONCE)))

    assert {answer.status for answer in answers} == {413}
    assert "at most 50,000,000" in answers[0].json()["error"]["message"]
    assert resident_bytes(pid) - before < GROWTH_MAX_BYTES
    assert served.call(body=good).status == 200
    assert int(served.status()["pid"]) == pid
