"""Our own calls of the control API, typed: what `gshare status` and `gshare up` read."""

from __future__ import annotations

from typing import Any

import msgspec
import requests

from gateway_plugin.errors import StoreUnavailable
from gateway_plugin.openfaas.gshare_views import DeviceView, GshareFunctionView

TIMEOUT_S = 10.0


def functions(url: str) -> list[GshareFunctionView]:
    """All deployed functions. Raises: StoreUnavailable when the gateway cannot answer."""
    found: list[GshareFunctionView] = _get(f"{url}/gshare/functions", list[GshareFunctionView])
    return found


def devices(url: str) -> list[DeviceView]:
    """All devices. Raises: StoreUnavailable when the gateway cannot answer."""
    found: list[DeviceView] = _get(f"{url}/gshare/devices", list[DeviceView])
    return found


def _get(url: str, kind: Any) -> Any:
    try:
        answer = requests.get(url, timeout=TIMEOUT_S)
    except requests.RequestException as error:
        raise StoreUnavailable(f"{url}: {error}") from error
    if answer.status_code != 200:
        raise StoreUnavailable(f"{url}: {answer.status_code} {answer.text.strip()}")
    return msgspec.json.decode(answer.content, type=kind)
