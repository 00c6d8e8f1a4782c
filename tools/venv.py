"""Makes `.venv` and keeps it up to date: `python -m tools.venv runtime` (to serve) or `… dev` (to test, too).

Only the standard library, since nothing is installed yet. It says what it will cost first, installs exact versions
(`constraints.txt`), and does nothing when nothing changed. pip's own environment and configuration hold.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway_plugin.needs import SERVING_MEMORY_BYTES

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = {"runtime": "runtime", "dev": "runtime,dev"}
TORCH_INDEX = "GSHARE_TORCH_INDEX"
PIP_FAILED = (
    "pip could not install (its reason is above). Without network to a package index, set pip's PIP_INDEX_URL or "
    "PIP_FIND_LINKS to one that you reach; then run the same command again."
)


class InstallError(Exception):
    """The environment could not be made; the text says what to change."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What an installation takes, in megabytes (10^6 bytes), measured on Linux x86_64 with Python 3.11."""

    download_mb: int
    disk_mb: int


CPU_BUILD = Cost(download_mb=270, disk_mb=1300)
CUDA_BUILD = Cost(download_mb=2800, disk_mb=5300)
DEV_TOOLS = Cost(download_mb=230, disk_mb=690)
SERVING_MB = SERVING_MEMORY_BYTES // 1_000_000


@dataclass(frozen=True, slots=True)
class Stamp:
    """What was installed; compared with what is asked for."""

    inputs: str
    target: str
    torch_index: str

    def covers(self, wanted: Stamp) -> bool:
        """Whether an environment of this stamp needs nothing more; `dev` contains `runtime`."""
        same = (self.inputs, self.torch_index) == (wanted.inputs, wanted.torch_index)
        return same and self.target in (wanted.target, "dev")


def read_stamp(path: Path) -> Stamp | None:
    """None: nothing was installed, or an installation was cut short."""
    try:
        return Stamp(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def wanted_stamp(root: Path, target: str, *, env: Mapping[str, str], installed: Stamp | None) -> Stamp:
    """What is asked for. A torch index once given is kept, so that a later plain `make up` does not swap the build."""
    digest = hashlib.sha256()
    for path in (root / "pyproject.toml", root / "constraints.txt", *function_requirements(root, env)):
        digest.update(f"{path}\n".encode() + path.read_bytes())
    kept = installed.torch_index if installed else ""
    return Stamp(digest.hexdigest(), target, env.get(TORCH_INDEX) or kept)


def function_requirements(root: Path, env: Mapping[str, str]) -> list[Path]:
    """requirements.txt of every function: all functions of one machine share one environment."""
    roots = (env.get("GSHARE_FUNCTIONS_PATH") or "functions:.").split(":")
    handlers = (path for part in roots if part for path in sorted((root / part).glob("*/handler.py")))
    files = (handler.with_name("requirements.txt") for handler in handlers)
    return [path for path in files if path.is_file() and requirement_lines(path)]


def requirement_lines(path: Path) -> list[str]:
    """The lines of a requirements file that ask for something."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def cost_text(target: str, *, torch_index: str, free_mb: int, available_mb: int) -> list[str]:
    """Lines that say download, disk and memory, and warn where the machine has less."""
    more = DEV_TOOLS if target == "dev" else Cost(0, 0)
    cpu, cuda = (Cost(c.download_mb + more.download_mb, c.disk_mb + more.disk_mb) for c in (CPU_BUILD, CUDA_BUILD))
    lines = [
        f"  download  up to {_gb(cuda.download_mb)} with torch's CUDA build, {_gb(cpu.download_mb)} with its CPU build",
        f"  disk      up to {_gb(cuda.disk_mb)} or {_gb(cpu.disk_mb)}; free here: {_gb(free_mb)}",
        f"  memory    {_gb(SERVING_MB)} to serve all of stack.yml; available: {_gb(available_mb)}",
    ]
    if torch_index:
        lines.append(f"  torch     from {torch_index}")
    else:
        lines.append(f"  torch     the package index's own build; {TORCH_INDEX}=URL picks another (CPU, cu126, …)")
    return lines + _warnings(cpu, cuda, free_mb=free_mb, available_mb=available_mb)


def _warnings(cpu: Cost, cuda: Cost, *, free_mb: int, available_mb: int) -> list[str]:
    lines = []
    if free_mb < cuda.disk_mb:
        which = "either build" if free_mb < cpu.disk_mb else "torch's CUDA build; the CPU build fits"
        lines.append(f"  WARNING   not enough disk for {which}")
    if available_mb < SERVING_MB:
        lines.append("  WARNING   little memory: deploy fewer functions, e.g. make up FUNCTIONS=resnet50")
    return lines


def _gb(megabytes: int) -> str:
    return f"{megabytes / 1000:.1f} GB"


def available_memory_mb(meminfo: str) -> int:
    """MemAvailable of /proc/meminfo, in megabytes; 0 where it does not say."""
    for line in meminfo.splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024 // 1_000_000
    return 0


def torch_requirements(pyproject: Path, constraints: Path) -> tuple[str, str]:
    """(pinned, range), e.g. ("torch==2.13.0", "torch>=2.11"): an index of older builds may lack the pin."""
    runtime = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]["runtime"]
    in_range = next(line for line in runtime if line.startswith("torch"))
    return next(line for line in requirement_lines(constraints) if line.startswith("torch==")), in_range


def asked_by_functions(requirements: list[Path]) -> list[str]:
    """Lines that say which function asked for what, since pip names neither side of a conflict by its file."""
    asked = [f"  {path}: {line}" for path in requirements for line in requirement_lines(path)]
    return ["If versions conflict: all functions share one environment, and they asked for", *asked] if asked else []


class Venv:
    """The project's virtual environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / ".venv"
        self.stamp = self.path / "installed.json"
        self._python = str(self.path / "bin" / "python")

    def create(self) -> None:
        """A fresh one where there is none that works. Raises: InstallError."""
        if self._works():
            return
        if subprocess.run([sys.executable, "-m", "venv", "--clear", str(self.path)], check=False).returncode:
            raise InstallError(f"{sys.executable} could not make {self.path}; its reason is above")

    def _works(self) -> bool:
        probe = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
        try:
            return subprocess.run([self._python, "-c", probe], capture_output=True, check=False).returncode == 0
        except OSError:
            return False

    def install(self, wanted: Stamp, *, requirements: list[Path]) -> None:
        """Install everything that `wanted` names, then write its stamp. Raises: InstallError."""
        constraints = self.root / "constraints.txt"
        if wanted.torch_index:
            constraints = self._install_torch(wanted.torch_index, constraints)
        functions = [part for path in requirements for part in ("-r", str(path))]
        project = f"{self.root}[{EXTRAS[wanted.target]}]"
        if self._pip("-c", str(constraints), *functions, "-e", project):
            raise InstallError("\n".join([PIP_FAILED, *asked_by_functions(requirements)]))
        self.stamp.write_text(json.dumps(asdict(wanted)))

    def _install_torch(self, index: str, constraints: Path) -> Path:
        """torch alone from `index`; what it needs comes with the rest. Returns constraints that keep this build."""
        pinned, in_range = torch_requirements(self.root / "pyproject.toml", constraints)
        alone = ("--no-deps", "--force-reinstall", "--index-url", index)
        if self._pip(*alone, pinned):
            _say(f"{index} has no {pinned}: taking its newest of {in_range}")
            if self._pip(*alone, in_range):
                raise InstallError(f"{TORCH_INDEX}={index}: no {in_range} for this Python there; use another index")
        kept = self.path / "constraints.txt"
        others = [line for line in requirement_lines(constraints) if line != pinned]
        kept.write_text("\n".join([*others, f"torch=={self._torch_version()}", ""]))
        return kept

    def _torch_version(self) -> str:
        ask = "from importlib.metadata import version; print(version('torch'))"
        return subprocess.run([self._python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()

    def _pip(self, *arguments: str) -> int:
        command = [self._python, "-m", "pip", "install", "--disable-pip-version-check", *arguments]
        return subprocess.run(command, check=False, cwd=self.root).returncode


@contextmanager
def _only_one(root: Path) -> Iterator[None]:
    """Two terminals may run make at once; the second waits and then finds everything done."""
    with (root / "constraints.txt").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def update(root: Path, target: str, *, env: Mapping[str, str]) -> None:
    """Bring `.venv` to what is asked for. Raises: InstallError."""
    venv = Venv(root)
    with _only_one(root):
        installed = read_stamp(venv.stamp)
        wanted = wanted_stamp(root, target, env=env, installed=installed)
        if installed and installed.covers(wanted):
            return
        free_mb = shutil.disk_usage(root).free // 1_000_000
        available_mb = available_memory_mb(Path("/proc/meminfo").read_text())
        _say(f"Installing into {venv.path} (once; Python {sys.version.split()[0]}):")
        for line in cost_text(target, torch_index=wanted.torch_index, free_mb=free_mb, available_mb=available_mb):
            _say(line)
        venv.create()
        venv.install(wanted, requirements=function_requirements(root, env))


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def main(arguments: list[str]) -> int:
    """Exit code: 0 done, 1 failed, 2 called wrongly."""
    if len(arguments) != 1 or arguments[0] not in EXTRAS:
        _say(f"usage: python -m tools.venv {'|'.join(EXTRAS)}")
        return 2
    try:
        update(ROOT, arguments[0], env=os.environ)
    except InstallError as error:
        _say(f"\n{error}")
        return 1
    except KeyboardInterrupt:
        _say("\nStopped; the same command goes on from here.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
