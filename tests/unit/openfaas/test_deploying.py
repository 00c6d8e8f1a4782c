"""POST, PUT and DELETE /system/functions, and what they leave behind."""

from __future__ import annotations

from tests.unit.openfaas.control_api import ControlApi


def test_a_new_function_is_accepted_with_an_empty_body_and_shows_its_minimum_of_replicas(api: ControlApi) -> None:
    answer = api.deploy(labels={"com.openfaas.scale.min": "2"})
    assert (answer.status_code, answer.data) == (202, b"")
    found = api.function()
    assert (found["replicas"], found["availableReplicas"], found["invocationCount"]) == (2, 0, 0)
