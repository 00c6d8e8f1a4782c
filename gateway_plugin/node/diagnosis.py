"""What is sound and what is not on a machine: pure checks over its facts (see `machine_facts`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from gateway_plugin.needs import MIN_PYTHON, SERVING_MEMORY_BYTES, STATE_DISK_BYTES
from gateway_plugin.paths import SOCKET_PATH_LIMIT

MIN_OPEN_FILES = 4096
"""Each request in flight holds two sockets in the data plane."""
_ARCH = re.compile(r"(sm|compute)_(\d+)(\d)([af]?)")
_FIRST_WITHOUT_OLD_GPUS = (7, 5)
"""Since CUDA 12.8, PyTorch's builds begin here; the cu126 builds still have Maxwell, Pascal and Volta (V100)."""


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It serves, but not everything works, or not well."""
    PROBLEM = "problem"
    """`gshare up` or a GPU function will fail."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One checked thing."""

    level: Level
    name: str
    text: str
    remedy: str = ""
    """What to do about it: a line to paste, or a sentence. Empty when all is well."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A CUDA device as NVML tells."""

    uuid: str
    name: str
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Torch:
    """The installed torch; `error` when importing it failed."""

    version: str = ""
    cuda: str = ""
    """CUDA version it was built for; empty: a CPU build."""
    cuda_available: bool = False
    arch_list: tuple[str, ...] = ()
    """`torch.cuda.get_arch_list()`; empty where CUDA is not available."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class MpsFact:
    """One MPS daemon that is there."""

    device: str
    trouble: str = ""
    """Why it cannot be used; empty: it answers."""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything the checks look at."""

    system: str
    """As `platform.system()` says."""
    machine: str
    """As `platform.machine()` says."""
    python: tuple[int, int, int]
    pidfd: bool
    open_files_limit: int
    """Hard limit; the soft one is raised to it."""
    available_memory_bytes: int
    free_disk_bytes: int
    home: str
    longest_socket_path_bytes: int
    port: int
    port_free: bool
    running: bool
    """Whether this home's supervisor runs: then the port is ours."""
    torch: Torch | None
    """None: not installed."""
    gpus: tuple[Gpu, ...]
    driver_cuda: tuple[int, int]
    """Newest CUDA that the driver speaks; (0, 0): no driver."""
    mps_control: str
    """Path of nvidia-cuda-mps-control; empty: none."""
    mps_setting: str
    """GSHARE_MPS."""
    mps_daemons: tuple[MpsFact, ...] = ()
    """Of the daemons that this home's agent has started and not stopped."""


def examine(facts: Facts) -> list[Finding]:
    """Every check, in the order in which things are needed."""
    checks: list[Callable[[Facts], Finding]] = [
        _platform, _python, _pidfd, _open_files, _memory, _disk, _socket_path, _port, _torch, _mps,
    ]  # fmt: skip
    return [check(facts) for check in checks] + [_gpu(facts, gpu) for gpu in facts.gpus]


def _finding(name: str, text: str, *, bad: bool, remedy: str, level: Level = Level.PROBLEM) -> Finding:
    return Finding(level, name, text, remedy) if bad else Finding(Level.OK, name, text)


def _platform(facts: Facts) -> Finding:
    supported = facts.system == "Linux" and facts.machine in ("x86_64", "aarch64")
    remedy = "use Linux on x86_64 or aarch64 (on other systems, in a virtual machine)"
    return _finding("platform", f"{facts.system} on {facts.machine}", bad=not supported, remedy=remedy)


def _python(facts: Facts) -> Finding:
    least = ".".join(map(str, MIN_PYTHON))
    remedy = f"install Python {least} or newer; make PYTHON=/path/to/python3 up"
    text = ".".join(map(str, facts.python))
    return _finding("python", text, bad=facts.python[:2] < MIN_PYTHON, remedy=remedy)


def _pidfd(facts: Facts) -> Finding:
    text = "pidfd_open works" if facts.pidfd else "pidfd_open does not work"
    remedy = "needs Linux 5.3 or newer; a sandbox that filters system calls must allow pidfd_open"
    return _finding("kernel", text, bad=not facts.pidfd, remedy=remedy)


def _open_files(facts: Facts) -> Finding:
    few = facts.open_files_limit < MIN_OPEN_FILES
    remedy = f"raise the hard limit to {MIN_OPEN_FILES} or more (ulimit -Hn, limits.conf)"
    text = f"{facts.open_files_limit} may be open"
    return _finding("open files", text, bad=few, remedy=remedy, level=Level.WARNING)


def _memory(facts: Facts) -> Finding:
    little = facts.available_memory_bytes < SERVING_MEMORY_BYTES and not facts.running
    text = f"{_gb(facts.available_memory_bytes)} available; stack.yml takes about {_gb(SERVING_MEMORY_BYTES)}"
    remedy = "deploy fewer functions: make up FUNCTIONS=resnet50"
    return _finding("memory", text, bad=little, remedy=remedy, level=Level.WARNING)


def _disk(facts: Facts) -> Finding:
    little = facts.free_disk_bytes < STATE_DISK_BYTES and not facts.running
    text = f"{_gb(facts.free_disk_bytes)} free for {facts.home}; state takes about {_gb(STATE_DISK_BYTES)}"
    return _finding("disk", text, bad=little, remedy="set GSHARE_HOME to a larger disk", level=Level.WARNING)


def _socket_path(facts: Facts) -> Finding:
    length = facts.longest_socket_path_bytes
    text = f"longest path {length} of {SOCKET_PATH_LIMIT} bytes"
    remedy = "set GSHARE_HOME, or TMPDIR, to a folder with a shorter path"
    return _finding("unix sockets", text, bad=length > SOCKET_PATH_LIMIT, remedy=remedy)


def _port(facts: Facts) -> Finding:
    if facts.running:
        return Finding(Level.OK, "port", f"{facts.port} is served by the gateway that runs here")
    text = f"{facts.port} is free" if facts.port_free else f"{facts.port} is taken by another program"
    return _finding("port", text, bad=not facts.port_free, remedy="make up GSHARE_PORT=8090, or stop that program")


def _torch(facts: Facts) -> Finding:
    torch = facts.torch
    if torch is None:
        return Finding(Level.PROBLEM, "torch", "not installed", "make up installs it")
    if torch.error:
        return Finding(Level.PROBLEM, "torch", f"cannot be imported: {torch.error}", "rm -r .venv && make up")
    if not facts.gpus:
        return Finding(Level.OK, "torch", f"{torch.version}; no NVIDIA GPU here, so functions run on the CPU")
    if not torch.cuda:
        text = f"{torch.version} is a CPU build, but there are GPUs"
        return Finding(Level.WARNING, "torch", text, _install_line(_build_for(facts)))
    if not torch.cuda_available:
        driver = _dotted(facts.driver_cuda)
        text = f"{torch.version} (CUDA {torch.cuda}) sees no GPU; the driver speaks CUDA up to {driver}"
        return Finding(Level.PROBLEM, "torch", text, f"update the driver, or: {_install_line(_build_for(facts))}")
    return Finding(Level.OK, "torch", f"{torch.version}, CUDA {torch.cuda}, for {' '.join(torch.arch_list)}")


def _gpu(facts: Facts, gpu: Gpu) -> Finding:
    name, arch = f"GPU {gpu.uuid}", f"sm_{gpu.capability[0]}{gpu.capability[1]}"
    torch = facts.torch
    if torch is None or not torch.arch_list:
        return Finding(Level.OK, name, f"{gpu.name}, {arch}; not compared, see torch")
    if runs_on(gpu.capability, torch.arch_list):
        return Finding(Level.OK, name, f"{gpu.name}, {arch}")
    text = f"{gpu.name} is {arch}; torch {torch.version} was built for {' '.join(torch.arch_list)}"
    return Finding(Level.PROBLEM, name, text, _install_line(_build_for(facts)))


def runs_on(capability: tuple[int, int], arch_list: tuple[str, ...]) -> bool:
    """Whether code built for `arch_list` runs on a GPU of this compute capability.

    Machine code (`sm_80`) runs on its own major version from its minor version upwards, PTX (`compute_90`) on
    everything newer, and `sm_90a` only on exactly that (CUDA programming guide, "Binary Compatibility").
    """
    return any(_fits(capability, match) for arch in arch_list if (match := _ARCH.fullmatch(arch)))


def _fits(capability: tuple[int, int], arch: re.Match[str]) -> bool:
    kind, built, suffix = arch[1], (int(arch[2]), int(arch[3])), arch[4]
    if suffix == "a":
        return capability == built
    if kind == "compute" and not suffix:
        return capability >= built
    return capability[0] == built[0] and capability[1] >= built[1]


def _build_for(facts: Facts) -> str:
    """Name of the PyTorch index whose build has kernels for the oldest GPU and suits the driver; empty: the default."""
    if min(gpu.capability for gpu in facts.gpus) < _FIRST_WITHOUT_OLD_GPUS:
        return "cu126"
    return "cu128" if (0, 0) < facts.driver_cuda < (13, 0) else ""


def _install_line(build: str) -> str:
    if not build:
        return "rm -r .venv && make up"
    return f"make up GSHARE_TORCH_INDEX=URL, with the URL of PyTorch's {build} index (pytorch.org, Get Started)"


def _mps(facts: Facts) -> Finding:
    if not facts.gpus:
        return Finding(Level.OK, "MPS", "not needed without a GPU")
    if facts.mps_setting == "off":
        return Finding(Level.OK, "MPS", "GSHARE_MPS=off: GPUs are shared in time only")
    if not facts.mps_control:
        required = facts.mps_setting == "required"
        text = "nvidia-cuda-mps-control is not in PATH: " + (
            "no GPU function starts, since GSHARE_MPS=required" if required else "GPUs are shared in time only"
        )
        remedy = "install the driver's compute utilities, which have nvidia-cuda-mps-control"
        return Finding(Level.PROBLEM if required else Level.WARNING, "MPS", text, remedy)
    for fact in facts.mps_daemons:
        if fact.trouble:
            return Finding(Level.WARNING, "MPS", fact.trouble, fact.remedy)
    answering = ", ".join(fact.device for fact in facts.mps_daemons)
    running = f"its daemons answer for {answering}" if answering else "its daemons start with the agent"
    return Finding(Level.OK, "MPS", f"{facts.mps_control}; {running}")


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB"


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
