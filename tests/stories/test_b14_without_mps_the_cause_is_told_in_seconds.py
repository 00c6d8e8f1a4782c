"""B14 (k8s-device-plugin#647, #679, #762, #1118, #1614): an MPS daemon that is missing or stuck is told in seconds."""

from __future__ import annotations

import json

import pytest

from gateway_plugin.agent_protocol import No, StartReplica
from gateway_plugin.node.mps import MpsLimits
from tests.gpu_node import GPUS, GpuNode, gpu_node, spec_on
from tests.unix_http import call

CAUSES = {
    "GPU-d7": ("hang", "-d did not return within"),
    "GPU-a1": ("exit1", "-d ended with code 1: Failed to start"),
    "GPU-f3": ("late", "no answer to 'get_server_list' within"),
    "GPU-b2": ("refuse", "'get_server_list' ended with code 1: Permission denied"),
}


def test_each_cause_is_in_the_log_within_ten_seconds_and_replicas_start_in_time_sharing_marked_degraded() -> None:
    modes = ",".join(f"{device}={mode}" for device, (mode, _) in CAUSES.items())
    assert MpsLimits().longest_start_s <= 10, "and all devices start at the same time"
    with gpu_node(fake_mps=modes, patient=False) as node:
        log = node.log()
        status = node.start(spec_on("GPU-f3", "f-1"))
        told = json.loads(call(node.paths.replica_http("f-1"), "/").body)
        tokens = next(entry for ledger in node.ledgers() for entry in ledger.entries)

    for device, (_, cause) in CAUSES.items():
        (line,) = [line for line in log.splitlines() if f"MPS for {device}" in line]
        assert f"(pipe directory {node.paths.mps_pipes(device)})" in line
        assert cause in line
        assert "then restart the agent; GSHARE_MPS=off does without" in line
    assert status.degraded.startswith("MPS for GPU-f3 (pipe directory ")
    assert len(tokens.units) == GPUS[0].cores // 64 // 2, "one token for the whole GPU: nothing else holds it"
    assert told["CUDA_VISIBLE_DEVICES"] == "GPU-f3"
    assert not [name for name in told if name.startswith("CUDA_MPS_")], "CUDA must not look for a daemon"


@pytest.mark.parametrize(("policy", "starts"), [("auto", True), ("required", False)])
def test_an_absent_program_is_named_with_what_installs_it_and_the_policy_decides(policy: str, starts: bool) -> None:
    with gpu_node(fake_mps=None, GSHARE_MPS=policy, GSHARE_DEVICES=GPUS[0].uuid) as node:
        if starts:
            text = node.start(spec_on(GPUS[0].uuid, "f-1")).degraded
        else:
            text = _refusal(node)
            assert text.endswith("; GSHARE_MPS=required starts nothing without MPS")
            assert node.ids() == []
    assert f"(pipe directory {node.paths.mps_pipes(GPUS[0].uuid)}): nvidia-cuda-mps-control cannot be run" in text
    assert "install the driver's compute utilities" in text


def _refusal(node: GpuNode) -> str:
    return node.ask(StartReplica(1, spec_on(GPUS[0].uuid, "f-1")), No).reason
