"""Starts and stops everything of one machine, from outside: what `gshare up` and `gshare down` stand on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import requests
from gshare.wire import Channel, Message, WireError, connect

from gateway_plugin.errors import PluginError, StartError
from gateway_plugin.listeners import port_is_free
from gateway_plugin.logfiles import tail
from gateway_plugin.main import open_store
from gateway_plugin.paths import Paths
from gateway_plugin.processes import ProcessId, python_command, spawn
from gateway_plugin.settings import Settings
from gateway_plugin.supervisor.daemon import child_environment
from gateway_plugin.supervisor.lock import holder
from gateway_plugin.supervisor.protocol import AskStatus, AskStop, Processes

POLL_S = 0.05
START_TIMEOUT_S = 60.0
GONE_S = 3.0
"""Without a supervisor for this time nothing is going to come up."""
STOPPED_MEANWHILE = "the supervisor is gone: it was stopped meanwhile, or could not start"
HOPELESS_RESTARTS = 5
"""A process that died this often while starting is not going to come up."""


def gateway_url(settings: Settings) -> str:
    host = f"[{settings.bind_host}]" if ":" in settings.bind_host else settings.bind_host
    return f"http://{host}:{settings.port}"


def processes(paths: Paths) -> Processes | None:
    """What the supervisor says; None if none runs."""
    return _ask(paths, AskStatus(), timeout_s=5.0)


def settings_in_force(running: Processes) -> Settings:
    """What the running machine was started with, which this shell's environment may not repeat."""
    return Settings.from_env(running.settings)


def is_gone(paths: Paths) -> bool:
    """Whether no supervisor runs."""
    return holder(paths.supervisor_lock) is None


def _ask(paths: Paths, request: Message, *, timeout_s: float) -> Processes | None:
    try:
        channel: Channel[Processes] = connect(str(paths.supervisor_socket), Processes, timeout_s=timeout_s)
    except OSError:
        return None
    try:
        channel.send(request)
        return channel.receive()
    except WireError:
        return None
    finally:
        channel.close()


def start(settings: Settings, *, progress: Callable[[str], None]) -> bool:
    """Start the supervisor and wait until the gateway answers; False if it adopted what an earlier one left running.

    On failure what this call started is stopped again; what was running before serves on.

    Raises:
        StartError: what is wrong and what to do.
    """
    paths = Paths(settings.home)
    fresh = not _anything_runs(paths)
    _check_before_start(settings, fresh=fresh)
    try:
        paths.create()
    except OSError as error:
        raise StartError(f"GSHARE_HOME={str(paths.home)!r} cannot be used: {error}") from error
    try:
        spawn_supervisor(settings)
        _wait_until_up(settings, paths, progress)
    except StartError:
        if fresh:
            stop(settings)
        raise
    return fresh


def _check_before_start(settings: Settings, *, fresh: bool) -> None:
    if fresh and not port_is_free(settings.bind_host, settings.port):
        raise StartError(
            f"{settings.bind_host}:{settings.port} is taken by another program; stop it, or set GSHARE_PORT to another"
        )
    if settings.redis_url:
        _check_redis(settings)


def _check_redis(settings: Settings) -> None:
    try:
        open_store(settings).ping()
    except (PluginError, OSError, ValueError) as error:
        raise StartError(
            f"the Redis of GSHARE_REDIS_URL cannot be used: {error}; "
            "start it, mend the URL, or unset it for the embedded one"
        ) from error


def spawn_supervisor(settings: Settings) -> None:
    """Start the supervisor; it makes itself a daemon and adopts what an earlier one left."""
    log = Paths(settings.home).logs / "supervisor.log"
    process = spawn(python_command("process", "supervisor"), env=child_environment(settings), log=log, cwd=Path("/"))
    process.wait()


def _wait_until_up(settings: Settings, paths: Paths, progress: Callable[[str], None]) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    alive_at = time.monotonic()
    url, said = gateway_url(settings), ""
    while time.monotonic() < deadline:
        state = processes(paths)
        if holder(paths.supervisor_lock) is not None:
            alive_at = time.monotonic()
        elif time.monotonic() - alive_at > GONE_S:
            raise StartError(f"{STOPPED_MEANWHILE}; the end of its log:\n{_log_end(paths, 'supervisor')}")
        if state is not None:
            _refuse_hopeless(state, paths)
            waiting = [one.name for one in state.processes if one.state != "running"]
            text = f"waiting for {', '.join(waiting)}" if waiting else "waiting for the gateway"
            if not waiting and _healthy(url):
                return
            if text != said:
                said = text
                progress(text)
        time.sleep(POLL_S)
    raise StartError(f"the gateway did not answer within {START_TIMEOUT_S:.0f} s; see the logs in {paths.logs}")


def _refuse_hopeless(state: Processes, paths: Paths) -> None:
    for one in state.processes:
        if one.restarts >= HOPELESS_RESTARTS:
            text = f"{one.name} does not stay up ({one.last_exit}); the end of its log:"
            raise StartError(f"{text}\n{_log_end(paths, one.name)}")


def _log_end(paths: Paths, name: str) -> str:
    return tail(paths.logs / f"{name}.log", lines=8)


def _healthy(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=2).status_code == 200
    except requests.RequestException:
        return False


def stop(settings: Settings) -> bool:
    """Stop everything; False if nothing ran. An orphaned machine (supervisor killed) is adopted first, then stopped.

    Raises:
        StartError: the supervisor does not answer or does not end.
    """
    paths = Paths(settings.home)
    if not _anything_runs(paths):
        paths.remove_run()
        return False
    if holder(paths.supervisor_lock) is None:
        spawn_supervisor(settings)
        _wait(lambda: processes(paths) is not None, START_TIMEOUT_S, "the supervisor does not answer")
    timeout_s = settings.drain_timeout_s * 4 + START_TIMEOUT_S
    supervisor = holder(paths.supervisor_lock)
    if _ask(paths, AskStop(), timeout_s=timeout_s) is None and supervisor is not None:
        supervisor.send(signal.SIGTERM)  # its socket is gone, or not there yet
    _wait(lambda: supervisor is None or not supervisor.alive(), timeout_s, "the supervisor does not end")
    return True


def _anything_runs(paths: Paths) -> bool:
    """Whether a supervisor runs, or one left processes or replicas that do."""
    records = (*paths.processes.glob("*.json"), *paths.replicas.glob("*/record.json"))
    return holder(paths.supervisor_lock) is not None or any(_runs(record) for record in records)


class _Record(msgspec.Struct, frozen=True):
    """What the supervisor's and the agent's records have in common."""

    process: ProcessId


def _runs(record: Path) -> bool:
    try:
        return msgspec.json.decode(record.read_bytes(), type=_Record).process.alive()
    except (OSError, msgspec.MsgspecError):
        return False


def _wait(condition: Callable[[], bool], timeout_s: float, problem: str) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise StartError(f"{problem} within {timeout_s:.0f} s")
        time.sleep(POLL_S)
