"""B11 (container-engine-accelerators PR 308, nebuly k8s-device-plugin PR 1): memory limits as CUDA reads them."""

from __future__ import annotations

import json

import msgspec
import pytest
from gshare.wire import LiveConfig

from gateway_plugin.node.mps_env import PINNED_DEVICE_MEM_LIMIT, pinned_memory_limit
from tests.fake_nvml import GIB
from tests.gpu_node import gpu_node, spec_on
from tests.unix_http import call


@pytest.mark.parametrize(
    ("limits", "cards", "text"),
    [
        ([40 * GIB], [80 * GIB], "0=40960M"),
        ([40 * GIB, 8 * GIB], [80 * GIB, 16 * GIB], "0=40960M,1=8192M"),
        ([2_700_000_000], [80 * GIB], "0=2574M"),
        ([81 * GIB, 17 * GIB], [80 * GIB, 16 * GIB], "0=81920M,1=16384M"),
    ],
)
def test_bytes_become_mebibytes_with_the_devices_ordinal_and_never_more_than_the_card(
    limits: list[int], cards: list[int], text: str
) -> None:
    assert pinned_memory_limit(limits, cards=cards) == text


def test_half_of_an_80_gib_card_is_0_40960m_in_the_replica_and_all_and_more_is_the_card() -> None:
    with gpu_node(GSHARE_DEVICES="GPU-a1") as node:
        for replica, memory_bytes in (("half-1", 40 * GIB), ("more-1", 100 * GIB)):
            spec = msgspec.structs.replace(spec_on("GPU-a1", replica), live=LiveConfig(memory_bytes=memory_bytes))
            assert node.start(spec).degraded == ""
        told = [json.loads(call(node.paths.replica_http(one), "/").body) for one in ("half-1", "more-1")]
    assert [one[PINNED_DEVICE_MEM_LIMIT] for one in told] == ["0=40960M", "0=81920M"]
