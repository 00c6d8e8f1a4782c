"""`gshare up`, `status` and `deploy`: bring the machine up, apply a stack file, wait, show."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from gateway_plugin import client, machine
from gateway_plugin.deploy import Action, choose_gateway, deploy
from gateway_plugin.errors import StackError, StartError, StoreUnavailable
from gateway_plugin.openfaas.gshare_views import GshareFunctionView
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.snapshots import find_folder
from gateway_plugin.stack import Stack, StackFunction, read_stack
from gateway_plugin.supervisor.protocol import Processes
from gateway_plugin.views import ENFORCED, curl_line, functions_table, processes_table, trouble

POLL_S = 0.2
LEAST_WIDTH = 150
"""Columns that tables are laid out for at least, so that URLs stay whole."""
console = Console(highlight=False, soft_wrap=True, width=max(LEAST_WIDTH, shutil.get_terminal_size().columns))


def up(settings: Settings, stack_file: Path, *, only: Sequence[str]) -> int:
    """Start what does not run, apply the stack file, wait until each function serves or its trouble is known.

    Returns the exit code: 0 unless a function fails. One that is pending for want of room is no failure.

    Raises:
        PluginError: nothing was left half-started.
    """
    stack = read_stack(stack_file, os.environ, names=only)
    _check_folders(settings, stack)
    fresh = _bring_up(settings)
    if not _apply(stack, machine.gateway_url(settings)):
        if fresh:
            machine.stop(settings)
            console.print("nothing was deployed, so everything is stopped again")
        return 1
    return _wait_and_show(settings, stack)


def _bring_up(settings: Settings) -> bool:
    """Whether nothing ran before, so that everything may be stopped again if it comes to nothing."""
    running = machine.processes(Paths(settings.home))
    if running is not None:
        _say_running(settings, running)
        return False
    console.print(f"starting gateway, agent and Redis (state in {settings.home})")
    return machine.start(settings, progress=lambda text: console.print(f"  {text}"))


def _check_folders(settings: Settings, stack: Stack) -> None:
    """A function whose code is not to be found is told before anything starts."""
    for function in stack.functions:
        _folder(settings, function)


def _folder(settings: Settings, function: StackFunction) -> Path:
    """Raises: BadRequest naming the folders looked at."""
    folder, _ = find_folder(function.spec.image, [Path(root) for root in settings.functions_path])
    return folder


def _say_running(settings: Settings, running: Processes) -> None:
    names = ", ".join(one.name for one in running.processes)
    console.print(f"already running: {names} at {machine.gateway_url(settings)}")
    wanted = settings.to_env()
    changed = [f"{key}={wanted[key]}" for key in wanted if running.settings.get(key) != wanted[key]]
    if changed:
        raise StartError(
            f"it runs with other settings than {', '.join(changed)}; `make down` first, then `make up` again"
        )


def _apply(stack: Stack, url: str) -> bool:
    """Deploy every function of the stack; says what failed. False if none could be deployed."""
    outcomes = []
    for outcome in deploy([function.spec for function in stack.functions], url):
        outcomes.append(outcome)
        console.print(f"  {outcome.function}: {outcome.action}{': ' if outcome.message else ''}{outcome.message}")
    return any(outcome.action is not Action.FAILED for outcome in outcomes)


def _wait_and_show(settings: Settings, stack: Stack) -> int:
    url = machine.gateway_url(settings)
    names = {function.spec.name for function in stack.functions}
    views = _wait_until_settled(settings, url, names=names)
    console.print()
    console.print(functions_table(views, devices=client.devices(url), url=url))
    others = sorted(view.name.partition(".")[0] for view in views if view.name not in names)
    if others:
        console.print(f"\ndeployed earlier and left as they are: {', '.join(others)}")
    console.print(f"\n{ENFORCED}")
    _show_samples(settings, stack, [view for view in views if view.ready and view.name in names], url=url)
    return 1 if any(view.failures for view in views if view.name in names) else 0


def _wait_until_settled(settings: Settings, url: str, *, names: set[str]) -> list[GshareFunctionView]:
    """Wait until each function serves as wanted, is pending, or has failed; tells each change once."""
    said: dict[str, str] = {}
    deadline = time.monotonic() + settings.start_timeout_s
    while True:
        views = _functions_or_none(url)
        if not views and machine.is_gone(Paths(settings.home)):
            raise StartError(f"{machine.STOPPED_MEANWHILE}; `make up` starts it again")
        waiting = False
        for view in views:
            if view.name in names:
                state = _state(view)
                waiting |= not state
                _say_once(said, view, state or "loading")
        if (views and not waiting) or time.monotonic() > deadline:
            return views
        time.sleep(POLL_S)


def _functions_or_none(url: str) -> list[GshareFunctionView]:
    try:
        return client.functions(url)
    except StoreUnavailable:
        return []


def _state(view: GshareFunctionView) -> str:
    """What has become of it; empty while that is open."""
    outdated = [one for one in view.replicas if one.revision != view.revision]
    if view.ready >= view.wanted and not outdated:
        return "ready" if view.wanted else "scaled to zero"
    return trouble(view) if view.failures or view.pending else ""


def _say_once(said: dict[str, str], view: GshareFunctionView, state: str) -> None:
    if said.get(view.name) != state:
        said[view.name] = state
        console.print(f"  {view.name.partition('.')[0]}: {state}")


def _show_samples(settings: Settings, stack: Stack, views: list[GshareFunctionView], *, url: str) -> None:
    ready = {view.name for view in views}
    lines = []
    for function in stack.functions:
        samples = sorted(_folder(settings, function).glob("sample.*"))
        if function.spec.name in ready and samples:
            lines.append(curl_line(function.spec.service, samples[0], url=url))
    if lines:
        console.print("\ntry:")
        for line in lines:
            console.print(f"  {line}")


def show_status(settings: Settings) -> int:
    """Processes and functions, as tables. Returns 1 if nothing runs."""
    running = machine.processes(Paths(settings.home))
    if running is None:
        console.print(f"nothing runs with GSHARE_HOME={settings.home}; `make up` starts it")
        return 1
    url = machine.gateway_url(machine.settings_in_force(running))
    console.print(processes_table(running.processes))
    console.print()
    console.print(functions_table(client.functions(url), devices=client.devices(url), url=url))
    console.print(f"\n{ENFORCED}")
    return 0


def deploy_file(settings: Settings, stack_file: Path, *, only: Sequence[str], gateway: str) -> int:
    """Apply a stack file to a gateway. Returns 1 if a function could not be deployed."""
    stack = read_stack(stack_file, os.environ, names=only)
    running = machine.processes(Paths(settings.home))
    own = machine.gateway_url(machine.settings_in_force(running) if running else settings)
    url = choose_gateway(gateway or own, stack.gateway, os.environ)
    failed = 0
    for outcome in deploy([function.spec for function in stack.functions], url):
        failed += outcome.action is Action.FAILED
        console.print(f"{outcome.function}: {outcome.action}{': ' if outcome.message else ''}{outcome.message}")
    if not stack.functions:
        raise StackError(f"{stack_file}: no functions")
    return 1 if failed else 0
