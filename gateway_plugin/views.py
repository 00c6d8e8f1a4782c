"""What the terminal shows: tables of functions and processes, and lines to paste."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from rich.table import Table

from gateway_plugin.model import ReplicaState
from gateway_plugin.openfaas.gshare_views import DeviceView, GshareFunctionView, ReplicaView
from gateway_plugin.supervisor.protocol import ProcessStatus

ENFORCED = (
    "Replicas are held to the space and time of their shares; their memory is counted, and limited only on a GPU."
)
URL = "URL"
"""Heading of the one column that is pasted, so never broken."""
_CONTENT_TYPES = {".json": "application/json", ".jpg": "image/jpeg", ".png": "image/png", ".wav": "audio/wav"}


def functions_table(functions: Iterable[GshareFunctionView], *, devices: Iterable[DeviceView], url: str) -> Table:
    """One row a function: replicas ready of wanted, device, share, weights, URL, and what is wrong if anything is."""
    table = _table("FUNCTION", "REPLICAS", "DEVICE", "SHARE", "WEIGHTS", URL, "")
    known = {device.id: device for device in devices}
    for one in functions:
        active = [replica for replica in one.replicas if replica.state != ReplicaState.DRAINING]
        table.add_row(
            one.name.partition(".")[0],
            f"{one.ready}/{one.wanted}",
            ", ".join(sorted({_place_text(replica, known) for replica in active})) or "-",
            one.share.text,
            ", ".join(sorted({replica.weights for replica in active if replica.weights})) or one.weights or "-",
            f"{url}{one.url_path}",
            trouble(one),
        )
    return table


def _place_text(replica: ReplicaView, devices: dict[str, DeviceView]) -> str:
    if not replica.device:
        return "none"
    device = devices.get(replica.device)
    if device is None or not device.cores:
        return f"{replica.device} ({len(replica.units)} units)"
    return f"{replica.device} core {','.join(str(device.cores[unit]) for unit in replica.units)}"


def trouble(function: GshareFunctionView) -> str:
    """Why a function is not as wanted; empty when it is."""
    if function.reason:
        state = "failing: " if function.failures else "pending: " if function.pending else ""
        return f"{state}{function.reason}"
    errors = [replica.ack_error for replica in function.replicas if replica.ack_error]
    if errors:
        return f"settings refused: {errors[0]}"
    degraded = [replica.degraded for replica in function.replicas if replica.degraded]
    if degraded:
        return f"degraded: {degraded[0]}"
    ungated = [replica.id for replica in function.replicas if replica.ungated_device_use]
    return f"ungated_device_use: {', '.join(ungated)} uses its cores beyond its tokens" if ungated else ""


def processes_table(processes: Iterable[ProcessStatus]) -> Table:
    """One row a supervised process."""
    table = _table("PROCESS", "STATE", "PID", "UP", "RESTARTS", "")
    for one in processes:
        notes = ", ".join(filter(None, ["adopted" if one.adopted else "", one.last_exit]))
        table.add_row(one.name, one.state, str(one.pid or "-"), f"{one.uptime_s:.0f} s", str(one.restarts), notes)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading == URL)
    return table


def curl_line(function: str, sample: Path, *, url: str) -> str:
    """Posts the sample file to the function; the path is shown relative where it lies below here."""
    try:
        shown = sample.relative_to(Path.cwd())
    except ValueError:
        shown = sample
    kind = content_type_of(sample)
    data = shlex.quote(f"@{shown}")
    return f"curl -s -H 'Content-Type: {kind}' --data-binary {data} {url}/function/{function}"


def content_type_of(sample: Path) -> str:
    """Of a sample input, by its name."""
    return _CONTENT_TYPES.get(sample.suffix, "application/octet-stream")
