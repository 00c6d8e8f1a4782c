"""What a replica's process is started with: command line and environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gshare
from gshare.config import ENV_PREFIX, MODEL_WEIGHTS, ReplicaConfig

from gateway_plugin.model import Device, ReplicaSpec
from gateway_plugin.paths import Paths

TEMPLATE = Path(gshare.__file__).parent.parent
"""Folder of the template, whose index.py and gunicorn.conf.py every replica runs."""
NOT_INHERITED = (ENV_PREFIX, "CUDA_MPS_")
"""The agent's own settings, and those of an MPS daemon that is not ours."""
OVERSHOOT = 8
"""Data-plane workers that look at one moment see the same free place; what they hand over beyond the limit waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """Arguments of one start."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: Path


def launch_of(
    spec: ReplicaSpec,
    *,
    paths: Paths,
    device: Device | None,
    device_env: Mapping[str, str],
    credential: str,
    weights_root: Path,
    exec_timeout_s: float,
    base_env: Mapping[str, str],
) -> Launch:
    """How to start this replica, on a device with what that needs in the environment.

    The node's own names win over the function's environment.
    """
    config = replica_config(
        spec,
        paths=paths,
        device=device,
        credential=credential,
        weights_root=weights_root,
        exec_timeout_s=exec_timeout_s,
    )
    inherited = {key: value for key, value in base_env.items() if not key.startswith(NOT_INHERITED)}
    search = [str(paths.code / spec.code_digest), str(TEMPLATE)]
    owned = config.to_env() | {"PYTHONPATH": os.pathsep.join(search), "PYTHONUNBUFFERED": "1"}
    if spec.weights:
        owned[MODEL_WEIGHTS] = spec.weights
    owned |= device_env
    argv = (sys.executable, "-m", "gunicorn", "--config", str(TEMPLATE / "gunicorn.conf.py"), "index:app")
    return Launch(argv=argv, env=inherited | spec.env | owned, cwd=paths.replica(spec.id))


def replica_config(
    spec: ReplicaSpec,
    *,
    paths: Paths,
    device: Device | None,
    credential: str,
    weights_root: Path,
    exec_timeout_s: float,
) -> ReplicaConfig:
    """The runtime's view of a replica's spec."""
    live = spec.live
    units = spec.place.units if spec.place else ()
    cores = [device.cores[unit] for unit in units] if device and device.cores else []
    return ReplicaConfig(
        function=spec.function,
        replica=spec.id,
        revision=spec.revision,
        device=device.id if device else "",
        cpus=",".join(map(str, cores)),
        sm_partition=spec.sm_partition,
        quota_request=live.quota_request,
        quota_limit=live.quota_limit,
        gpu_mem=live.memory_bytes or 0,
        node_socket=str(paths.replica_node(spec.id)),
        token_socket=str(paths.replica_tokens(spec.id)) if device else "",
        credential=credential,
        bind=f"unix:{paths.replica_http(spec.id)}",
        max_batch=live.max_batch,
        max_batch_delay_ms=live.max_batch_delay_ms,
        slo_ms=live.slo_ms or 0.0,
        max_inflight=spec.max_inflight,
        max_queued=OVERSHOOT,
        exec_timeout_s=exec_timeout_s,
        secrets_dir=str(paths.replica(spec.id) / "secrets"),
        weights_root=str(weights_root),
        weights_cache=str(paths.weights_cache),
    )
