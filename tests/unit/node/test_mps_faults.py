"""Which evidence is a fault of the whole device, and who is named for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gateway_plugin.node.mps_faults import Death, Evidence, judge

QUIET = Evidence(
    now_s=100.0, deaths=(), answers=True, faulted_servers=(), log_lines=(), clients={501: "bert-1", 502: "vit-1"}
)
BOTH_DIED = (Death("vit-1", 99.5), Death("bert-1", 99.2))


def test_a_quiet_device_has_no_fault() -> None:
    assert judge(QUIET) is None
    assert judge(replace(QUIET, log_lines=("Default active thread percentage set to 100", "New client 501"))) is None


def test_a_server_in_fault_is_one_and_the_first_to_die_is_named_as_probable() -> None:
    fault = judge(replace(QUIET, faulted_servers=(77,), deaths=BOTH_DIED))
    assert fault is not None
    assert fault.culprit == "bert-1"
    assert fault.text == "MPS server 77 is in state FAULT; probably caused by bert-1, the first to die"


@pytest.mark.parametrize(
    "line",
    [
        "[Server 77] Client {PID: 502, Context ID: 1} fatal exception",
        "[Server 77] fault of client 502",
        "Unrecoverable error, PID 502",
    ],
)
def test_a_client_that_the_log_names_goes_before_the_first_to_die(line: str) -> None:
    fault = judge(replace(QUIET, faulted_servers=(77,), deaths=BOTH_DIED, log_lines=("New client 501 connected", line)))
    assert fault is not None
    assert fault.culprit == "vit-1"
    assert "which the MPS log names" in fault.text


def test_a_log_line_alone_is_enough_also_where_the_driver_has_no_server_states() -> None:
    fault = judge(replace(QUIET, log_lines=("Server encountered a fatal exception. Shutting down",)))
    assert fault is not None
    assert fault.culprit == ""
    assert "nothing shows which replica caused it" in fault.text


def test_two_deaths_are_a_fault_only_where_the_server_cannot_say_that_it_is_well() -> None:
    assert judge(replace(QUIET, deaths=BOTH_DIED)) is None
    fault = judge(replace(QUIET, deaths=BOTH_DIED, answers=False))
    assert fault is not None
    assert fault.text.startswith("2 replicas died within 2 s and the MPS daemon does not answer")


def test_deaths_of_long_ago_are_no_evidence_any_more() -> None:
    assert judge(replace(QUIET, deaths=BOTH_DIED, answers=False, now_s=200.0)) is None
    fault = judge(replace(QUIET, deaths=BOTH_DIED, faulted_servers=(77,), now_s=200.0))
    assert fault is not None
    assert fault.culprit == ""


def test_one_death_or_deaths_long_apart_are_no_fault_of_the_device() -> None:
    assert judge(replace(QUIET, answers=False, deaths=BOTH_DIED[:1])) is None
    assert judge(replace(QUIET, answers=False, deaths=(Death("vit-1", 99.5), Death("bert-1", 90.0)))) is None


def test_deaths_at_the_same_moment_are_told_apart_by_name() -> None:
    same = (Death("vit-1", 99.0), Death("bert-1", 99.0))
    for deaths in (same, same[::-1]):
        fault = judge(replace(QUIET, faulted_servers=(77,), deaths=deaths))
        assert fault is not None
        assert fault.culprit == "bert-1"
