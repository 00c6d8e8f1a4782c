"""B7 (HAMi-core#319, HAMi#320, gpustack#1633): whatever order GPUs come in, a replica is on the one it was given."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import msgspec

from gateway_plugin.agent_protocol import Devices, ListDevices
from gateway_plugin.node.devices import discover
from gateway_plugin.node.replica import RECORD, ReplicaRecord
from tests.fake_nvml import GIB, FakeNvml, Gpu
from tests.gpu_node import GPUS, gpu_node, spec_on
from tests.unix_http import call


def test_a_replica_on_the_third_of_four_gpus_has_its_uuid_in_record_environment_and_mps() -> None:
    third = GPUS[2].uuid
    with gpu_node() as node:
        devices = node.ask(ListDevices(), Devices).devices
        assert [one.id for one in devices] == [gpu.uuid for gpu in GPUS]
        node.start(msgspec.structs.replace(spec_on(devices[2].id, "f-1"), env={"CUDA_VISIBLE_DEVICES": "0"}))

        record = msgspec.json.decode((node.paths.replica("f-1") / RECORD).read_bytes(), type=ReplicaRecord)
        told = json.loads(call(node.paths.replica_http("f-1"), "/").body)
        pid = next(iter(asyncio.run(node.daemon(third).clients()))).pid
        daemon = Path(f"/proc/{min(node.daemon(third).pids())}/environ").read_bytes().split(b"\0")

    assert record.status.spec.place is not None
    assert record.status.spec.place.device == third
    assert (told["CUDA_VISIBLE_DEVICES"], told["CUDA_DEVICE_ORDER"]) == (third, "PCI_BUS_ID")
    assert told["pid"] == pid, "it computes through the daemon of that GPU"
    assert f"CUDA_VISIBLE_DEVICES={third}".encode() in daemon
    assert b"CUDA_DEVICE_ORDER=PCI_BUS_ID" in daemon


def test_in_every_order_of_the_gpus_an_id_is_the_same_gpu() -> None:
    gpus = [Gpu(f"GPU-{size}", f"GPU of {size} GiB", 6912, (8, 0), size * GIB) for size in (16, 32, 40, 80)]
    for order in itertools.permutations(gpus):
        for picked in gpus:
            (device,) = discover(picked.uuid, nvml=FakeNvml(list(order)), cores=(), memory_bytes=0)
            assert (device.id, device.kind, device.memory_bytes) == (picked.uuid, picked.name, picked.memory_bytes)
