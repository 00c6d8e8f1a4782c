"""Collects what `gshare doctor` looks at. Nothing is changed, and no CUDA context is made in this process."""

from __future__ import annotations

import asyncio
import importlib
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from gateway_plugin.errors import MpsUnavailable
from gateway_plugin.model import Device
from gateway_plugin.node.devices import gpu_devices
from gateway_plugin.node.diagnosis import Facts, Gpu, MpsFact, Torch
from gateway_plugin.node.mps import PROGRAM, MpsDaemon
from gateway_plugin.node.spaces import mps_daemon
from gateway_plugin.paths import REPLICA_ID_LENGTH, Paths
from gateway_plugin.settings import Settings

TORCH_TIMEOUT_S = 120.0
_TORCH_PROBE = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda or "", "cuda_available": cuda,
                  "arch_list": torch.cuda.get_arch_list() if cuda else []}))
"""


def collect(settings: Settings, *, python: str = sys.executable) -> Facts:
    """Facts of this machine; `python` is the one whose torch is asked."""
    paths = Paths(settings.home)
    gpus, driver_cuda, devices = _gpus()
    return Facts(
        system=platform.system(),
        machine=platform.machine(),
        python=sys.version_info[:3],
        pidfd=_pidfd_works(),
        open_files_limit=_open_files_limit(),
        available_memory_bytes=_available_memory_bytes(),
        free_disk_bytes=shutil.disk_usage(_nearest_existing(settings.home)).free,
        home=str(settings.home),
        longest_socket_path_bytes=len(os.fsencode(paths.replica_http("n" * REPLICA_ID_LENGTH))),
        port=settings.port,
        port_free=_port_free(settings.bind_host, settings.port),
        running=_somebody_listens(paths.supervisor_socket),
        torch=probe_torch(python),
        gpus=gpus,
        driver_cuda=driver_cuda,
        mps_control=shutil.which(PROGRAM) or "",
        mps_setting=settings.mps.value,
        mps_daemons=mps_facts(devices, paths),
    )


def probe_torch(python: str) -> Torch | None:
    """torch as a process of its own sees it, since a broken build may end the process that imports it."""
    try:
        result = subprocess.run(
            [python, "-c", _TORCH_PROBE], capture_output=True, text=True, check=False, timeout=TORCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return Torch(error=f"import did not finish in {TORCH_TIMEOUT_S:g} s")
    if "No module named 'torch'" in result.stderr:
        return None
    if result.returncode:
        reason = result.stderr.strip().splitlines()
        return Torch(error=reason[-1] if reason else f"the process ended with {result.returncode}")
    return msgspec.json.decode(result.stdout, type=Torch)


def mps_facts(devices: Iterable[Device], paths: Paths) -> tuple[MpsFact, ...]:
    """What the daemons of these devices say that are there; nothing is started."""
    daemons = [mps_daemon(device, paths=paths) for device in devices]
    return tuple(asyncio.run(_asked(daemon)) for daemon in daemons if daemon.exists())


async def _asked(daemon: MpsDaemon) -> MpsFact:
    try:
        await daemon.check()
    except MpsUnavailable as error:
        return MpsFact(daemon.device.id, error.what, error.remedy)
    return MpsFact(daemon.device.id)


def _gpus() -> tuple[tuple[Gpu, ...], tuple[int, int], tuple[Device, ...]]:
    """GPUs, the driver's CUDA version, and what of them the agent takes for devices."""
    nvml: Any = importlib.import_module("pynvml")
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return (), (0, 0), ()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        version = int(nvml.nvmlSystemGetCudaDriverVersion())
        gpus = tuple(_gpu(nvml, handle) for handle in handles)
        return gpus, (version // 1000, version % 1000 // 10), gpu_devices(nvml)
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: Any, handle: Any) -> Gpu:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    return Gpu(nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle), (int(major), int(minor)))


def _pidfd_works() -> bool:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return False
    return True


def _open_files_limit() -> int:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return sys.maxsize if hard == resource.RLIM_INFINITY else hard


def _available_memory_bytes() -> int:
    """MemAvailable, or what the control group has left where that is less."""
    fields = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    available = next((int(words[1]) * 1024 for words in fields if words[0] == "MemAvailable:"), 0)
    group = Path("/sys/fs/cgroup")
    try:
        limit, used = ((group / name).read_text().strip() for name in ("memory.max", "memory.current"))
    except OSError:
        return available
    return min(available, int(limit) - int(used)) if limit.isdigit() else available


def _nearest_existing(path: Path) -> Path:
    return next(folder for folder in (path, *path.parents) if folder.exists())


def _port_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server would: TIME_WAIT is no hindrance
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def _somebody_listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
