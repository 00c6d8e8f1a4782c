from __future__ import annotations

import pytest
from gshare.config import ReplicaConfig
from gshare.errors import ConfigError


def test_what_is_written_is_read_back() -> None:
    config = ReplicaConfig(
        function="f.ns", max_inflight=3, max_queued=2, exec_timeout_s=90, slo_ms=69, drain_timeout_s=0.5
    )

    assert ReplicaConfig.from_env(config.to_env()) == config


def test_an_empty_environment_is_one_that_serves() -> None:
    assert ReplicaConfig.from_env({"PATH": "/bin", "GSHARE_OTHER": "x"}) == ReplicaConfig()


@pytest.mark.parametrize(
    ("env", "seconds"),
    [
        ({}, 60),
        ({"exec_timeout": "5m"}, 300),
        ({"exec_timeout": "300"}, 300),
        ({"exec_timeout": '"300s"'}, 300),
        ({"exec_timeout": "0"}, 0),
        ({"GSHARE_EXEC_TIMEOUT_S": "90"}, 90),
        ({"GSHARE_EXEC_TIMEOUT_S": "1m30s"}, 90),
        ({"exec_timeout": "5s", "GSHARE_EXEC_TIMEOUT_S": "90"}, 5),
    ],
)
def test_the_time_limit_goes_by_the_functions_own_setting_first(env: dict[str, str], seconds: float) -> None:
    assert ReplicaConfig.from_env(env).exec_timeout_s == seconds


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("exec_timeout", "5 minutes", "exec_timeout='5 minutes': write a duration such as"),
        ("exec_timeout", "", "exec_timeout='': write a duration such as"),
        ("GSHARE_DRAIN_TIMEOUT_S", "soon", "GSHARE_DRAIN_TIMEOUT_S='soon': write a duration such as"),
        ("GSHARE_MAX_INFLIGHT", "many", "GSHARE_MAX_INFLIGHT='many': not a whole number"),
        ("GSHARE_MAX_INFLIGHT", "0", "GSHARE_MAX_INFLIGHT=0: at least 1"),
        ("GSHARE_MAX_QUEUED", "-1", "GSHARE_MAX_QUEUED=-1: 0 or more"),
        ("GSHARE_MAX_BATCH", "0", "max_batch=0: at least 1"),
        ("GSHARE_MAX_BATCH_DELAY_MS", "-1", "max_batch_delay_ms=-1: 0 or more"),
        ("GSHARE_MAX_BATCH_DELAY_MS", "inf", "GSHARE_MAX_BATCH_DELAY_MS='inf': not a number"),
        ("GSHARE_SLO_MS", "nan", "GSHARE_SLO_MS='nan': not a number"),
    ],
)
def test_what_cannot_be_used_is_refused_by_name_and_value(name: str, text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("(", r"\(")):
        ReplicaConfig.from_env({name: text})
