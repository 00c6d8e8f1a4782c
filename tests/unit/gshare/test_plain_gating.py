"""A plain function in a real replica is held to its time by its torch modules; without any it says so."""

from __future__ import annotations

from tests.replica_process import replica
from tests.token_stand import CREDENTIAL, TokenStand, token_stand

WITH_A_MODULE = """
import torch

MODEL = torch.nn.Linear(2, 2)


def handle(event, context):
    return MODEL(torch.ones(2)).tolist()
"""
WITHOUT = "def handle(event, context):\n    return 'ok'\n"


def env(stand: TokenStand) -> dict[str, str]:
    path = stand.register("f")
    return {"GSHARE_DEVICE": "cpu:0", "GSHARE_TOKEN_SOCKET": path, "GSHARE_CREDENTIAL": CREDENTIAL}


def test_a_module_call_takes_a_token_of_the_scheduler() -> None:
    with token_stand() as stand, replica(WITH_A_MODULE, env=env(stand)) as it:
        it.wait_ready()
        stand.wait_for_entry("f", connected=True)

        assert [it.call("/").status for _ in range(3)] == [200] * 3
        assert it.status()["turn"]["gating"] == "tokens"
        assert stand.entry("f").tokens >= 1


def test_code_without_modules_is_not_gated_and_says_so() -> None:
    with token_stand() as stand, replica(WITHOUT, env=env(stand)) as it:
        it.wait_ready()

        assert it.call("/").status == 200
        assert it.status()["turn"]["gating"].startswith("not gated")
        assert stand.entry("f").tokens == 0
