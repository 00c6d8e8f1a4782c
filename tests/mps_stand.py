"""MPS for tests: the stand-in of `tests/fake_mps` installed as nvidia-cuda-mps-control, and clients of either kind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway_plugin.model import Device
from gateway_plugin.node.mps import PROGRAM, MpsDaemon, MpsLimits

FAKE_CONTROL = Path(__file__).parent / "fake_mps" / "control.py"
PATIENT = MpsLimits(command_s=30, launch_s=30, answer_s=30, quit_s=30, kill_s=30)
"""For what must succeed, however slow the machine is."""
FAKE_CLIENT = """
import os, socket, sys
client = socket.socket(socket.AF_UNIX)
client.connect(os.environ["CUDA_MPS_PIPE_DIRECTORY"] + "/control")
client.sendall(f"connect {os.getpid()}\\n".encode())
for line in client.makefile():
    print(line.strip(), flush=True)
"""
CUDA_CLIENT = """
import torch
held = torch.zeros(1, device="cuda")
print("connected", flush=True)
input()
"""


def install_fake(folder: Path) -> Path:
    """Put the stand-in into `folder` under its real name; its path."""
    program = folder / PROGRAM
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {FAKE_CONTROL} "$@"\n')
    program.chmod(0o755)
    return program


@contextmanager
def fake_daemon(device: Device, *, limits: MpsLimits = PATIENT) -> Iterator[MpsDaemon]:
    """A daemon that is not started, in folders of its own, which have names short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="gshare-mps-") as name:
        folder = Path(name)
        program = str(install_fake(folder))
        yield MpsDaemon(device, pipes=folder / "pipes", logs=folder / "logs", program=program, limits=limits)
        shutil.rmtree(folder / "pipes", ignore_errors=True)


@contextmanager
def client_of(daemon: MpsDaemon, *, script: str = FAKE_CLIENT) -> Iterator[subprocess.Popen[str]]:
    """A process that computes through the daemon, once the daemon has it."""
    env = os.environ | {"CUDA_MPS_PIPE_DIRECTORY": str(daemon.pipes), "CUDA_VISIBLE_DEVICES": daemon.device.id}
    command = [sys.executable, "-c", script]
    with subprocess.Popen(
        command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as client:
        try:
            assert client.stdout is not None
            assert client.stdout.readline() == "connected\n"
            yield client
        finally:
            client.kill()


def commands_of(daemon: MpsDaemon) -> list[str]:
    """What the stand-in was told so far."""
    return (daemon.logs / "commands").read_text().splitlines()
