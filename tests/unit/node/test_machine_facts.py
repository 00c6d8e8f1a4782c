"""The collector against this machine itself."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import pytest

from gateway_plugin.model import Device
from gateway_plugin.node.diagnosis import MpsFact, Torch
from gateway_plugin.node.machine_facts import collect, mps_facts, probe_torch
from gateway_plugin.node.mps import PID_FILE
from gateway_plugin.node.spaces import mps_daemon
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from tests.mps_stand import install_fake


def fake_python(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def quick_python(tmp_path: Path) -> str:
    """Answers the torch probe at once, so that only one test pays for importing it."""
    return fake_python(tmp_path, """echo "ModuleNotFoundError: No module named 'torch'" >&2; exit 1""")


def test_facts_of_this_machine_are_plausible(tmp_path: Path, quick_python: str) -> None:
    home = tmp_path / "not" / "made" / "yet"

    facts = collect(Settings(home=home), python=quick_python)

    assert facts.system == "Linux"
    assert facts.python == sys.version_info[:3]
    assert facts.pidfd
    assert facts.available_memory_bytes > 100_000_000
    assert facts.free_disk_bytes > 0
    assert facts.torch is None
    assert not facts.running
    assert not home.exists(), "looking must not make anything"


def test_a_port_that_somebody_listens_on_is_seen_and_a_free_one_too(tmp_path: Path, quick_python: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = collect(Settings(home=tmp_path, port=port), python=quick_python)
    free = collect(Settings(home=tmp_path, port=port), python=quick_python)

    assert (taken.port_free, free.port_free) == (False, True)


def test_a_running_supervisor_is_seen_by_its_socket(quick_python: str) -> None:
    # Not under tmp_path, which can be too deep for a unix socket's name.
    with tempfile.TemporaryDirectory(prefix="gs") as home, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        paths = Paths(Path(home))
        paths.create()
        server.bind(str(paths.supervisor_socket))
        server.listen()
        running = collect(Settings(home=Path(home)), python=quick_python)
        server.close()
        stopped = collect(Settings(home=Path(home)), python=quick_python)

    assert (running.running, stopped.running) == (True, False)


def test_the_installed_torch_is_asked_in_a_process_of_its_own() -> None:
    torch = probe_torch(sys.executable)

    assert torch is not None
    assert torch.error == ""
    assert torch.version.startswith("2.")
    assert bool(torch.arch_list) is torch.cuda_available


def test_a_torch_that_cannot_be_imported_is_reported_with_the_last_line(tmp_path: Path) -> None:
    broken = fake_python(tmp_path, "echo Traceback >&2; echo 'ImportError: libgomp.so.1: no such file' >&2; exit 1")

    assert probe_torch(broken) == Torch(error="ImportError: libgomp.so.1: no such file")


def test_a_torch_that_kills_its_process_is_reported_with_the_signal(tmp_path: Path) -> None:
    assert probe_torch(fake_python(tmp_path, "kill -ILL $$")) == Torch(error="the process ended with -4")


def test_an_mps_daemon_is_asked_only_where_the_agent_has_started_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_fake(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with tempfile.TemporaryDirectory(prefix="gs") as home:
        paths = Paths(Path(home))
        paths.create()
        devices = [Device(id=f"GPU-{name}", kind="V100", units=40, memory_bytes=1) for name in ("none", "well", "dead")]
        for device in devices[1:]:
            asyncio.run(mps_daemon(device, paths=paths).start(replace=True))
        os.kill(int((paths.mps_pipes("GPU-dead") / PID_FILE).read_text()), signal.SIGKILL)

        well, dead = mps_facts(devices, paths)
        asyncio.run(mps_daemon(devices[1], paths=paths).stop())

    assert well == MpsFact("GPU-well")
    assert dead.device == "GPU-dead"
    assert "Cannot find MPS control daemon process" in dead.trouble
