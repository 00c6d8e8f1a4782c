"""C27 (pytorch/serve 3114, genienlp 181): a lost device ends the process, an input that is too large only its request.

The errors are those that torch raises; that a real GPU raises them is for a machine that has one (known limits).
"""

from __future__ import annotations

import pytest
from gshare.condition import Phase

from tests.replica_process import replica
from tests.served_app import loaded_app

FAULTY = """
import torch
from gshare.handler import Handler

FAULTS = {
    "oom": torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 90.00 GiB"),
    "assert": RuntimeError("CUDA error: device-side assert triggered"),
}

class Faulty(Handler):
    def load(self, context): ...
    def example(self): return "x"
    def decode(self, request): return request.text()
    def forward(self, items):
        if items[0] == "huge":
            torch.empty(2**60, dtype=torch.uint8)
        if items[0] in FAULTS:
            raise FAULTS[items[0]]
        return items
"""


@pytest.mark.parametrize("body", ["oom", "huge"])
def test_out_of_memory_is_507_for_that_request_and_the_next_one_is_served(
    body: str, caplog: pytest.LogCaptureFixture
) -> None:
    with loaded_app(FAULTY) as (client, runtime):
        refused = client.post("/", data=body)
        after = client.post("/", data="fine")

        assert (refused.status_code, refused.get_json()["error"]["code"]) == (507, "out_of_memory")
        assert (after.status_code, after.text) == (200, "fine")
        assert runtime.condition.phase is Phase.READY
        assert not runtime.ending.is_set()


def test_a_lost_device_is_503_for_its_requests_and_the_process_ends_so_that_another_takes_over() -> None:
    with replica(FAULTY) as it:
        it.wait_ready()
        lost = it.call("/", "assert")
        code = it.wait()
        it.wait_for_log("this process ends: the device failed and this process cannot use it any more")

    assert (lost.status, lost.json()["error"]["code"], lost.header("Retry-After")) == (503, "device_lost", "1")
    assert lost.json()["error"]["retryable"] is True
    assert code == 1
    assert it.log.count("this process ends") == 1, "one event"
