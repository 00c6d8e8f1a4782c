"""A node agent whose machine has four GPUs as far as NVML and nvidia-cuda-mps-control tell: both are stand-ins.

Run as a program it is that agent; everything else in it is the real one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gateway_plugin.agent_protocol import Done, ListReplicas, Replicas, StartReplica, StopReplica
from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.model import Device, Place, ReplicaSpec, ReplicaState, ReplicaStatus
from gateway_plugin.node import spaces
from gateway_plugin.node.agent import Agent
from gateway_plugin.node.devices import discover
from gateway_plugin.node.mps import MpsDaemon
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from tests.agent_process import PATIENCE_S, AgentProcess
from tests.fake_nvml import GIB, FakeNvml, Gpu
from tests.mps_stand import PATIENT, install_fake

GPUS = [Gpu(f"GPU-{name}", "NVIDIA A100-SXM4-80GB", 6912, (8, 0), 80 * GIB) for name in ("d7", "a1", "f3", "b2")]
"""In NVML's order, which is neither that of their names nor of anything else."""
PATIENT_MPS = "TEST_PATIENT_MPS"
CLIENT = """
import json, os, socket

mps = None
if "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
    mps = socket.socket(socket.AF_UNIX)
    mps.connect(os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/control")
    mps.sendall(f"connect {os.getpid()}\\n".encode())
    assert mps.recv(100) == b"connected\\n"


def handle(event, context):
    if event.body:
        open(event.body.decode()).read()
    cuda = {name: value for name, value in os.environ.items() if name.startswith("CUDA_")}
    return json.dumps(cuda | {"pid": os.getpid()})
"""
"""A function that joins MPS as CUDA does when it starts, tells its environment, and hangs on a FIFO that it is sent."""
SPEC = ReplicaSpec(id="", function="f.openfaas-fn", revision="r", code_digest="client", slot=0)


class GpuNode(AgentProcess):
    """The agent and what tests ask of it."""

    def __init__(self, folder: Path, *, fake_mps: str | None, patient: bool, settings: Mapping[str, str]) -> None:
        """`fake_mps`: how the control program misbehaves; None: there is none. `patient`: it may be slow, too."""
        self._bin = folder / "bin"
        self._bin.mkdir()
        if fake_mps is not None:
            install_fake(self._bin)
        self._extra = {"FAKE_MPS": fake_mps or "", PATIENT_MPS: "yes" if patient else ""}
        super().__init__(folder / "home", **settings)
        package = self.paths.code / SPEC.code_digest / "function"
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "handler.py").write_text(CLIENT)

    def command(self) -> list[str]:
        return [sys.executable, "-m", "tests.gpu_node"]

    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self._bin}{os.pathsep}{os.environ['PATH']}", **self._extra}

    def start(self, spec: ReplicaSpec) -> ReplicaStatus:
        """Start a replica; its status when it is ready."""
        self.ask(StartReplica(1, spec), Done)
        self.wait(lambda: self.status(spec.id).state is ReplicaState.READY)
        return self.status(spec.id)

    def stop(self, replica_id: str, *, grace_s: float = PATIENCE_S) -> None:
        self.ask(StopReplica(1, replica_id, grace_s), Done)

    def ids(self) -> list[str]:
        return [one.spec.id for one in self.ask(ListReplicas(), Replicas).replicas]

    def status(self, replica_id: str) -> ReplicaStatus:
        return next(one for one in self.ask(ListReplicas(), Replicas).replicas if one.spec.id == replica_id)

    def wait(self, condition: Callable[[], object]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline_s, self.log()
            time.sleep(0.02)

    def daemon(self, device_id: str) -> MpsDaemon:
        """Another door to the agent's MPS daemon of that device."""
        device = Device(id=device_id, kind="", units=0, memory_bytes=0)
        pipes, logs = self.paths.mps_pipes(device_id), self.paths.mps_logs(device_id)
        return MpsDaemon(device, pipes=pipes, logs=logs, program=str(install_fake(self._bin)), limits=PATIENT)


def spec_on(device_id: str, replica_id: str, *, sm_partition: int = 24) -> ReplicaSpec:
    """A replica on the first units of that device."""
    units = tuple(range(-(-sm_partition * 54 // 100)))
    place = Place(device_id, units)
    return ReplicaSpec(
        id=replica_id,
        function=SPEC.function,
        revision=SPEC.revision,
        code_digest=SPEC.code_digest,
        slot=0,
        sm_partition=sm_partition,
        place=place,
    )


@contextmanager
def gpu_node(*, fake_mps: str | None = "", patient: bool = True, **settings: str) -> Iterator[GpuNode]:
    """The node for the length of the block."""
    folder = Path(tempfile.mkdtemp(prefix="gs"))
    node = GpuNode(folder, fake_mps=fake_mps, patient=patient, settings=settings)
    try:
        yield node
    finally:
        node.close()
        shutil.rmtree(folder)


def _patient_daemon(device: Device, *, paths: Paths) -> MpsDaemon:
    return MpsDaemon(device, pipes=paths.mps_pipes(device.id), logs=paths.mps_logs(device.id), limits=PATIENT)


def main() -> None:
    """Be the agent."""
    settings = Settings.from_env({name: value for name, value in os.environ.items() if name.startswith("GSHARE_")})
    logging.basicConfig(level=settings.log_level)
    if os.environ[PATIENT_MPS]:
        spaces.mps_daemon = _patient_daemon
    nvml = FakeNvml(GPUS)
    devices = discover(settings.devices, nvml=nvml, cores=(), memory_bytes=0)
    heartbeat = Heartbeat(Paths(settings.home).processes / "agent.beat")
    asyncio.run(Agent(settings, devices=devices, nvml=nvml).run(heartbeat))


if __name__ == "__main__":
    main()
