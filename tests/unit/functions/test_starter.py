"""What `faas-cli new` hands out works as it is."""

from __future__ import annotations

from pathlib import Path

import gshare
import pytest

from tests.served_app import served

STARTER = Path(gshare.__file__).parent.parent / "function"


def test_the_starter_answers_and_says_what_is_wrong() -> None:
    with served(STARTER) as client:
        answer = client.post("/", json={"values": [0.1, 0.2, 0.3]})
        refused = client.post("/", json={"values": [0.1]})

    assert sum(answer.get_json()["scores"]) == pytest.approx(1)
    assert answer.get_json()["weights"] == "random:0"
    assert (refused.status_code, refused.get_json()["error"]["message"]) == (400, "values: 1 numbers; exactly 3")
