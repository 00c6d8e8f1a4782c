"""C28 (mlcommons/inference 798, 1402): no checkpoint for newcomers, and a new torch broke the model.

Every function runs on seeded weights of its own making, without a network, and answers the sample beside it as it was
recorded, whatever version of torch is here. Real weights stay optional.
"""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest

from tests.golden import agree, golden_answer, recorded_answers
from tests.tiny_functions import TINY_FUNCTIONS, TinyFunction


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be reached, nor be looked up."""

    def refuse(*where: object, **_: object) -> NoReturn:
        raise OSError(f"the network is off; asked for {where}")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)


@pytest.mark.parametrize("function", TINY_FUNCTIONS, ids=lambda function: function.name)
def test_a_function_answers_its_golden_input_without_a_network_or_a_checkpoint(function: TinyFunction) -> None:
    found = golden_answer(function)

    assert found["weights"] == "random:0"
    assert any(agree(found, one) for one in recorded_answers()[function.name]), found
