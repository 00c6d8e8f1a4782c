"""Runs nvidia-cuda-mps-control: once to become a daemon, and once for each command to it. Knows nothing of devices."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from gateway_plugin.logfiles import tail

_KILL_WAIT_S = 0.5


class ControlFailed(Exception):
    """The program did not do it; the text says how."""

    def __init__(self, text: str, *, absent: bool = False) -> None:
        super().__init__(text)
        self.absent = absent
        """The program is not installed."""


def without_mps_settings(env: Mapping[str, str]) -> dict[str, str]:
    """An environment free of MPS settings: a percentage or limit in a daemon's would become everybody's default."""
    return {name: value for name, value in env.items() if not name.startswith("CUDA_MPS_")}


async def launch(program: str, *, env: Mapping[str, str], output: Path, limit_s: float) -> None:
    """Start the daemon; what it prints meanwhile goes to `output`. Raises: ControlFailed."""
    # Not a pipe: a daemon that keeps it open would keep us waiting for its end.
    with output.open("wb") as file:
        process = await _run(program, "-d", env=env, stdin=asyncio.subprocess.DEVNULL, output=file.fileno())
    try:
        async with asyncio.timeout(limit_s):
            code = await process.wait()
    except TimeoutError as error:
        raise ControlFailed(f"{program} -d did not return within {limit_s:g} s") from error
    finally:
        await _kill(process)
    if code:
        raise ControlFailed(f"{program} -d ended with {_how(code)}: {tail(output, lines=1) or 'it printed nothing'}")


async def ask(program: str, command: str, *, env: Mapping[str, str], limit_s: float) -> str:
    """The daemon's answer to one command. Raises: ControlFailed."""
    process = await _run(program, env=env, stdin=asyncio.subprocess.PIPE, output=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(limit_s):
            printed, _ = await process.communicate(f"{command}\n".encode())
    except TimeoutError as error:
        raise ControlFailed(f"no answer to {command!r} within {limit_s:g} s") from error
    finally:
        await _kill(process)
    answer = printed.decode(errors="replace").strip()
    if process.returncode:
        raise ControlFailed(f"{command!r} ended with {_how(process.returncode)}: {answer or 'it printed nothing'}")
    return answer


async def _run(
    program: str, *arguments: str, env: Mapping[str, str], stdin: int, output: int
) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            program,
            *arguments,
            env=env,
            stdin=stdin,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise ControlFailed(f"{program} cannot be run: {error.strerror}", absent=True) from error


async def _kill(process: asyncio.subprocess.Process) -> None:
    """What has not ended, with everything it started in its group. One that cannot be killed is not waited for."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_KILL_WAIT_S):
            await process.wait()


def _how(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"code {code}"
