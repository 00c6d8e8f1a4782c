"""Steps that the stories on a whole machine share."""

from __future__ import annotations

from collections.abc import Mapping

import requests

from tests.e2e.machine_under_test import MachineUnderTest
from tests.unix_http import Answer, call


def deploy_now(
    machine: MachineUnderTest, name: str, handler: str, *, env: Mapping[str, str] | None = None, replicas: int = 1
) -> None:
    """Deploy a function and do not wait for it."""
    machine.write_function(name, handler)
    labels = {"com.openfaas.scale.min": str(replicas)}
    spec = {"service": name, "image": name, "envVars": dict(env or {}), "labels": labels}
    answer = requests.post(f"{machine.url}/system/functions", json=spec, timeout=60)
    assert answer.status_code in (200, 202), answer.text


def ask_replica(machine: MachineUnderTest, replica_id: str, path: str) -> Answer:
    """One page of a replica, past the gateway."""
    return call(machine.paths.replica_http(replica_id), path)
