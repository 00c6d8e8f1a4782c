"""What benchmarks need of the machine that runs: its functions, their samples, and waiting for them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import requests

from bench.figures import BenchError, Context
from bench.http_load import Call, Target
from gateway_plugin import client
from gateway_plugin.deploy import Action, deploy
from gateway_plugin.errors import StoreUnavailable
from gateway_plugin.machine import gateway_url
from gateway_plugin.model import FunctionSpec, canonical_name
from gateway_plugin.openfaas.gshare_views import GshareFunctionView
from gateway_plugin.views import content_type_of

POLL_S = 0.01
NO_ROOM_S = 15.0
"""A replica without a place for so long is not only waiting for its predecessor to leave."""


def functions(context: Context) -> dict[str, GshareFunctionView]:
    """All deployed functions by canonical name. Raises: BenchError."""
    url = gateway_url(context.settings)
    try:
        return {view.name: view for view in client.functions(url)}
    except StoreUnavailable as error:
        raise BenchError(f"no gateway at {url}: {error}; start it with make up") from error


def described(context: Context, function: str) -> GshareFunctionView:
    """One deployed function. Raises: BenchError naming those that are."""
    deployed = functions(context)
    name = canonical_name(function)
    if name not in deployed:
        raise BenchError(f"no function {name}; deployed are: {', '.join(sorted(deployed)) or 'none'}")
    return deployed[name]


def through_gateway(context: Context, function: str) -> Target:
    return Target(host=context.settings.bind_host, port=context.settings.port, prefix=f"/function/{function}")


def sample_of(context: Context, function: str) -> Call:
    """The function's own sample request. Raises: BenchError if its folder has none."""
    folders = [Path(root) / function for root in context.settings.functions_path]
    for folder in folders:
        for path in sorted(folder.glob("sample.*")):
            return Call("POST", "/", path.read_bytes(), content_type_of(path))
    looked = ", ".join(str(folder) for folder in folders)
    raise BenchError(f"{function}: no sample.* to send, in {looked}")


def put(context: Context, spec: FunctionSpec) -> None:
    """Deploy or update one function. Raises: BenchError with the gateway's words."""
    for outcome in deploy([spec], gateway_url(context.settings)):
        if outcome.action is Action.FAILED:
            raise BenchError(f"{outcome.function}: {outcome.message}")


def remove(context: Context, function: str) -> None:
    """Remove a function that the benchmark deployed; one that is not there, or no gateway, is no matter."""
    with contextlib.suppress(requests.RequestException):
        url = f"{gateway_url(context.settings)}/system/functions"
        requests.delete(url, json={"functionName": function}, timeout=10)


def scale(context: Context, function: str, replicas: int) -> None:
    requests.post(
        f"{gateway_url(context.settings)}/system/scale-function/{function}",
        json={"serviceName": function, "replicas": replicas},
        timeout=10,
    ).raise_for_status()


def wait_for(context: Context, function: str, condition: Callable[[GshareFunctionView], bool], *, what: str) -> float:
    """Seconds until the condition holds.

    Raises:
        BenchError: it does not within GSHARE_START_TIMEOUT_S, or there is no room on this machine's devices.
    """
    begin = placed = time.monotonic()
    while not condition(view := described(context, function)):
        now = time.monotonic()
        placed = placed if view.pending else now
        if now - placed > NO_ROOM_S:
            raise BenchError(
                f"{function}: {view.reason}; measure beside fewer functions: gshare down, gshare up --functions NAME,…"
            )
        if now - begin > context.settings.start_timeout_s:
            raise BenchError(f"{function}: not {what} within {context.settings.start_timeout_s:g} s: {view.reason}")
        time.sleep(POLL_S)
    return time.monotonic() - begin


def is_ready(view: GshareFunctionView) -> bool:
    """As many replicas as wanted serve, all of the wanted revision and with the wanted settings in force."""
    fresh = [one for one in view.replicas if one.revision == view.revision and one.acked_version == one.live_version]
    return view.ready == view.wanted == len(fresh) == len(view.replicas)
