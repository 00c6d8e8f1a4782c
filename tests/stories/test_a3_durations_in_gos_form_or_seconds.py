"""A3 (openfaas/faas 1016): Go's durations and bare seconds are accepted, everything else is refused by name."""

from __future__ import annotations

import pytest
from gshare.config import ReplicaConfig
from gshare.errors import ConfigError

from gateway_plugin.errors import SettingsError
from gateway_plugin.settings import Settings
from tests.replica_process import replica

GOOD = {"300": 300, "300s": 300, "5m": 300, "1h30m": 5400, '"300s"': 300}
BAD = ["5 minutes", "-3s", "300ss", "1e3"]
PLAIN = "def handle(event, context): return 'ok'"


@pytest.mark.parametrize(("text", "seconds"), GOOD.items())
def test_functions_and_gateway_read_the_same_durations(text: str, seconds: float) -> None:
    assert ReplicaConfig.from_env({"exec_timeout": text}).exec_timeout_s == seconds
    assert Settings.from_env({"GSHARE_UPSTREAM_TIMEOUT_S": text}).upstream_timeout_s == seconds


@pytest.mark.parametrize("text", [*BAD, ""])
def test_a_function_refuses_any_other_by_key_and_value(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ReplicaConfig.from_env({"exec_timeout": text})
    assert f"exec_timeout={text!r}" in str(caught.value)


@pytest.mark.parametrize("text", BAD)
def test_the_gateway_refuses_any_other_by_key_and_value(text: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"GSHARE_UPSTREAM_TIMEOUT_S": text})
    assert f"GSHARE_UPSTREAM_TIMEOUT_S={text!r}" in str(caught.value)


def test_a_replica_with_a_bad_one_does_not_start_and_its_log_says_why() -> None:
    with replica(PLAIN, {"exec_timeout": "5 minutes"}) as it:
        code = it.wait()
        it.wait_for_log("exec_timeout='5 minutes': write a duration such as 300, 300s, 5m or 1h30m")

    assert code != 0
