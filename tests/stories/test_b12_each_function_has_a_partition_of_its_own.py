"""B12 (k8s-device-plugin#1494, PR 807): partitions are each function's own; the daemon's default stays 100."""

from __future__ import annotations

import asyncio
import json

from gateway_plugin.node.mps_env import ACTIVE_THREAD_PERCENTAGE
from tests.gpu_node import gpu_node, spec_on
from tests.mps_stand import commands_of
from tests.unix_http import call


def test_30_and_60_on_one_card_are_30_and_60_in_the_replicas_and_100_in_the_daemon() -> None:
    with gpu_node(GSHARE_DEVICES="GPU-a1", CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="10") as node:
        for replica, partition in (("a-1", 30), ("b-1", 60)):
            node.start(spec_on("GPU-a1", replica, sm_partition=partition))
        told = [json.loads(call(node.paths.replica_http(one), "/").body) for one in ("a-1", "b-1")]
        daemon = node.daemon("GPU-a1")
        default = float(asyncio.run(daemon.command("get_default_active_thread_percentage")))
        clients = asyncio.run(daemon.clients())
        commands = commands_of(daemon)

    assert [one[ACTIVE_THREAD_PERCENTAGE] for one in told] == ["30", "60"]
    assert default == 100
    assert sorted(client.pid for client in clients) == sorted(one["pid"] for one in told)
    assert len({client.server for client in clients}) == 1
    assert not [command for command in commands if command.startswith("set_")]
