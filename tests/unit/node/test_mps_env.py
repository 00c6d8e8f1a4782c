"""The environment of MPS, in NVIDIA's exact forms."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from gshare.wire import LiveConfig
from hypothesis import given
from hypothesis import strategies as st

from gateway_plugin.model import Device, Place, ReplicaSpec
from gateway_plugin.node.mps_env import client_environment, daemon_environment, gpu_environment, pinned_memory_limit

GIB = 1024**3
GPU = Device(id="GPU-2", kind="NVIDIA A100", units=54, memory_bytes=80 * GIB)
SPEC = ReplicaSpec(
    id="f-1",
    function="f.openfaas-fn",
    revision="r",
    code_digest="d",
    slot=0,
    sm_partition=24,
    place=Place("GPU-2", tuple(range(13))),
    live=LiveConfig(memory_bytes=40 * GIB),
)


def test_a_client_gets_its_percentage_its_memory_the_pipes_and_one_gpu_by_uuid() -> None:
    assert client_environment(SPEC, GPU, pipes=Path("/run/mps/1")) == {
        "CUDA_VISIBLE_DEVICES": "GPU-2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_MPS_PIPE_DIRECTORY": "/run/mps/1",
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "24",
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=40960M",
    }


def test_without_a_memory_share_there_is_no_limit_and_not_one_of_zero() -> None:
    spec = msgspec.structs.replace(SPEC, live=LiveConfig())
    assert "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" not in client_environment(spec, GPU, pipes=Path("/p"))


def test_the_daemon_sees_one_gpu_by_uuid_and_sets_no_default_for_its_clients() -> None:
    assert daemon_environment(GPU, pipes=Path("/p"), logs=Path("/l")) == {
        "CUDA_VISIBLE_DEVICES": "GPU-2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_MPS_PIPE_DIRECTORY": "/p",
        "CUDA_MPS_LOG_DIRECTORY": "/l",
    }


def test_without_mps_a_replica_sees_one_gpu_by_uuid_all_the_same() -> None:
    assert gpu_environment(GPU) == {"CUDA_VISIBLE_DEVICES": "GPU-2", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


@pytest.mark.parametrize(
    ("limits", "cards", "text"),
    [
        ([40 * GIB], [80 * GIB], "0=40960M"),
        ([40 * GIB, GIB], [80 * GIB, 16 * GIB], "0=40960M,1=1024M"),
        ([2_700_000_000], [16 * GIB], "0=2574M"),
        ([100 * GIB], [80 * GIB], "0=81920M"),
        ([16 * GIB], [16 * GIB - 1], "0=16383M"),
    ],
)
def test_memory_limits_are_whole_mebibytes_by_device_ordinal(limits: list[int], cards: list[int], text: str) -> None:
    assert pinned_memory_limit(limits, cards=cards) == text


@given(limit=st.integers(64 * 1024**2, 10**12), card=st.integers(GIB, 10**12))
def test_a_memory_limit_is_never_above_card_or_share_and_less_than_a_mebibyte_below(limit: int, card: int) -> None:
    mib = int(pinned_memory_limit([limit], cards=[card]).removeprefix("0=").removesuffix("M"))
    allowed = min(limit, card)
    assert allowed - 1024**2 < mib * 1024**2 <= allowed
