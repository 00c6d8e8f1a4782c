"""A replica's environment: one class says every name, its meaning and its default.

The agent writes it (`to_env`), the runtime reads it (`from_env`). Everything is optional, so that the same image
runs under plain `docker run` or faas-netes: without GSHARE_NODE_SOCKET it serves unmanaged, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from gshare.durations import parse_duration_s
from gshare.errors import ConfigError
from gshare.wire import LiveConfig

ENV_PREFIX = "GSHARE_"
MODEL_WEIGHTS = "MODEL_WEIGHTS"
EXEC_TIMEOUT = "exec_timeout"
"""of-watchdog's name for the longest time of one request, as users of OpenFaaS set it."""
RESERVED_ENV_PREFIXES = ("GSHARE_", "CUDA_MPS_", "NVIDIA_")
RESERVED_ENV_NAMES = ("CUDA_VISIBLE_DEVICES",)
"""What a function's own environment may not set: these belong to the node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """What one replica was told at its start. Field `x` is environment variable `GSHARE_X`."""

    function: str = ""
    """Canonical name, NAME.NAMESPACE."""
    replica: str = ""
    """Replica id, unique on the node."""
    revision: str = ""
    """Digest of the function's code and rolling fields."""
    device: str = ""
    """Device id (GPU or MIG UUID, or `cpu:0`); empty: a GPU if torch sees one, else the CPU."""
    cpus: str = ""
    """Comma-separated core numbers on a CPU device; empty: all this process may use."""
    sm_partition: int = 100
    """Percent of the device's SMs."""
    quota_request: float = 1.0
    """Guaranteed fraction of the device's time."""
    quota_limit: float = 1.0
    """Most of the device's time it may use."""
    gpu_mem: int = 0
    """Device memory limit in bytes; 0: none."""
    node_socket: str = ""
    """Path of this replica's own unix socket to the agent; empty: unmanaged."""
    token_socket: str = ""
    """Path of this replica's own unix socket to its device's token scheduler; empty: no time quota."""
    credential: str = ""
    """Secret that proves to the agent which replica this is."""
    bind: str = "127.0.0.1:5000"
    """Where gunicorn listens: HOST:PORT or unix:PATH."""
    max_batch: int = 1
    """Most items in one forward pass."""
    max_batch_delay_ms: float = 0.0
    """How long a request may wait for company."""
    slo_ms: float = 0.0
    """Latency objective (p99) in milliseconds; 0: none."""
    max_inflight: int = 16
    """Requests in work at once, at most: in the function's code and in its model."""
    max_queued: int = 0
    """Requests beyond these that may wait for their turn; further ones get 429 at once."""
    exec_timeout_s: float = 60.0
    """Longest time for one request, then 504; 0: no limit. The function's own `exec_timeout` goes before it."""
    secrets_dir: str = "/var/openfaas/secrets"
    """Where secrets lie as files."""
    weights_root: str = ""
    """`file:` weights resolve inside this folder."""
    weights_cache: str = ""
    """Where `random:SEED` weights are written once; empty: a folder under the temporary directory."""
    max_body_bytes: int = 256 * 1024**2
    """Largest request body; beyond it 413."""
    node_wait_s: float = 10.0
    """How long a loaded replica waits for the agent's first answer before it serves without it."""
    drain_timeout_s: float = 30.0
    """Longest time from SIGTERM to the end, whatever is still in work."""
    drain_linger_s: float = 0.0
    """How long no request may have come after SIGTERM before it ends; for a proxy in front that learns late."""

    @classmethod
    def from_env(cls, env: Mapping[str, str]) -> ReplicaConfig:
        """Read GSHARE_* names of this class; others are left alone.

        Raises:
            ConfigError: a number that is none or out of range, naming variable and value.
        """
        values: dict[str, str | int | float] = {}
        for field in fields(cls):
            name = ENV_PREFIX + field.name.upper()
            if env.get(name):
                values[field.name] = _convert(name, env[name], type(field.default))
        if EXEC_TIMEOUT in env:
            values["exec_timeout_s"] = _duration_s(EXEC_TIMEOUT, env[EXEC_TIMEOUT])
        config = cls(**values)  # type: ignore[arg-type]
        if config.max_inflight < 1:
            raise ConfigError(f"GSHARE_MAX_INFLIGHT={config.max_inflight}: at least 1")
        if config.max_queued < 0:
            raise ConfigError(f"GSHARE_MAX_QUEUED={config.max_queued}: 0 or more")
        check_live(config.live())
        return config

    def to_env(self) -> dict[str, str]:
        """Every field as environment; empty texts are left out."""
        texts = {ENV_PREFIX + f.name.upper(): str(getattr(self, f.name)) for f in fields(self)}
        return {name: text for name, text in texts.items() if text}

    def live(self) -> LiveConfig:
        """The settings that can change later, as they are at the start."""
        return LiveConfig(
            quota_request=self.quota_request,
            quota_limit=self.quota_limit,
            memory_bytes=self.gpu_mem or None,
            slo_ms=self.slo_ms or None,
            max_batch=self.max_batch,
            max_batch_delay_ms=self.max_batch_delay_ms,
        )


def check_live(live: LiveConfig) -> None:
    """Raises: ConfigError for settings that no replica can work with."""
    if live.max_batch < 1:
        raise ConfigError(f"max_batch={live.max_batch}: at least 1")
    if live.max_batch_delay_ms < 0:
        raise ConfigError(f"max_batch_delay_ms={live.max_batch_delay_ms:g}: 0 or more")


def _convert(name: str, text: str, kind: type) -> str | int | float:
    if kind is float and name.endswith("_S"):
        return _duration_s(name, text)
    try:
        value: str | int | float = kind(text)
    except ValueError:
        value = math.nan
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{name}={text!r}: not a {'whole number' if kind is int else 'number'}")
    return value


def _duration_s(name: str, text: str) -> float:
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise ConfigError(f"{name}={text!r}: write {error}") from error
