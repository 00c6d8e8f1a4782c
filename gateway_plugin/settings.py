"""The one typed configuration: read once, from a mapping passed in; all mistakes are reported at once.

Each field is followed by its own text; `docs/settings.md` is generated from this class and checked for staleness.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gshare.durations import parse_duration_s

from gateway_plugin.errors import SettingsError

ENV_PREFIX = "GSHARE_"
OTHERS_ENV = ("GSHARE_SKIP_BUILD", "GSHARE_IMAGE_PREFIX", "GSHARE_TAG", "GSHARE_TORCH_INDEX", "GSHARE_TEST_SHARED")
"""GSHARE_ names that stack.yml, the Makefile or the tests read; not settings of the plugin."""
LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")


class Mps(StrEnum):
    """What CUDA's Multi-Process Service is to GPUs here."""

    AUTO = "auto"
    OFF = "off"
    REQUIRED = "required"


def _mps(text: str) -> Mps:
    try:
        return Mps(text)
    except ValueError:
        raise ValueError("auto, off or required") from None


def _whole(text: str) -> int:
    if not re.fullmatch(r"[0-9]+", text):
        raise ValueError("a whole number")
    return int(text)


def _paths(text: str) -> tuple[str, ...]:
    parts = tuple(part for part in text.split(":") if part)
    if not parts:
        raise ValueError("one or more folders, separated by colons")
    return parts


def _redis_url(text: str) -> str:
    if urlsplit(text).scheme not in ("redis", "rediss", "unix"):
        raise ValueError("redis://HOST:PORT/DB, rediss://… or unix:///PATH")
    return text


def _setting(parse: Callable[[str], Any], default: Any, *, low: float | None = None, high: float | None = None) -> Any:
    return field(default=default, metadata={"parse": parse, "low": low, "high": high})


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the plugin. Field `x` is environment variable `GSHARE_X`."""

    home: Path = _setting(Path, Path(".gshare"))
    """Folder of all state: sockets, logs, Redis' file, code snapshots. Relative to where `gshare` is started."""
    bind_host: str = _setting(str, "127.0.0.1")
    """Address of the gateway. Only loopback is accepted as long as the gateway has no authentication."""
    port: int = _setting(_whole, 8080, low=1, high=65535)
    """TCP port of the gateway, as OpenFaaS clients expect it."""
    redis_url: str = _setting(_redis_url, "")
    """Your own Redis or Valkey (6.2 or newer). Empty: an embedded server on a unix socket under `home`."""
    functions_path: tuple[str, ...] = _setting(_paths, ("functions", "."))
    """Colon-separated roots in which an image's last name part is looked up as a function's folder."""
    weights_root: Path = _setting(Path, Path("weights"))
    """`file:PATH` weights resolve inside this folder, symlinks included."""
    workers: int = _setting(_whole, 0, high=64)
    """Data-plane processes; 0: one for each four cores, at least one."""
    devices: str = _setting(str, "")
    """Devices to use, e.g. `cpu:0-0,cpu:1-1` or GPU UUIDs; empty: all GPUs, or the CPU where there are none."""
    mps: Mps = _setting(_mps, Mps.AUTO)
    """GPU partitions by CUDA's MPS. `auto`: where it works; else replicas share in time only and are marked degraded.
    `off`: in time only. `required`: a replica that would not be held to its partition is not started."""
    token_window_s: float = _setting(parse_duration_s, 0.0, low=0, high=10)
    """Time over which a replica's share of a device is kept; 0: 40 ms on a GPU, 200 ms on a CPU."""
    tick_s: float = _setting(parse_duration_s, 1.0, low=0.05, high=60)
    """How often the loop compares what is wanted with what runs, when nothing wakes it earlier."""
    upstream_timeout_s: float = _setting(parse_duration_s, 60.0, low=0.1, high=86400)
    """Longest time from handing a request to a replica to the first byte of its answer; then 504."""
    queue_timeout_s: float = _setting(parse_duration_s, 60.0, low=0.1, high=86400)
    """Longest time a request waits for a ready replica with room; then 503 with Retry-After."""
    queue_limit: int = _setting(_whole, 2048, low=1, high=1_000_000)
    """Most requests that wait for one function in one data-plane process; beyond it 429 with Retry-After."""
    max_body_bytes: int = _setting(_whole, 256 * 1024**2, low=1024)
    """Largest request body; beyond it 413."""
    max_inflight: int = _setting(_whole, 16, low=1, high=1024)
    """Requests one replica takes at once; the gateway holds back the rest."""
    start_timeout_s: float = _setting(parse_duration_s, 600.0, low=1, high=86400)
    """Longest time a replica may take from its start to ready, a download of weights included."""
    drain_timeout_s: float = _setting(parse_duration_s, 30.0, low=0.1, high=3600)
    """Longest time a replica that is to stop may take to finish what it has."""
    backoff_max_s: float = _setting(parse_duration_s, 30.0, low=0.1, high=3600)
    """Longest pause between restarts of a process that keeps dying. A replica's pauses grow to one minute."""
    log_max_bytes: int = _setting(_whole, 32 * 1024**2, low=64 * 1024)
    """A log file that grows beyond this is cut to its newest half."""
    log_level: str = _setting(str, "INFO")
    """DEBUG, INFO, WARNING or ERROR."""

    @classmethod
    def from_env(cls, env: Mapping[str, str], *, cwd: Path | None = None) -> Settings:
        """Read and check every `GSHARE_` name.

        Raises:
            SettingsError: one line for each unknown name, bad value or contradiction.
        """
        problems = _unknown(env, known={_env_name(f) for f in fields(cls)} | set(OTHERS_ENV))
        values: dict[str, Any] = {}
        for spec in fields(cls):
            text = env.get(_env_name(spec))
            if text:
                _read(spec, text, values=values, problems=problems)
        settings = cls(**_absolute(values, cls, cwd or Path.cwd()))
        problems += settings._contradictions()
        if problems:
            raise SettingsError("\n".join(problems))
        return settings

    def _contradictions(self) -> list[str]:
        problems = []
        if self.bind_host not in LOOPBACK_HOSTS:
            problems.append(
                f"GSHARE_BIND_HOST={self.bind_host!r}: only loopback ({', '.join(LOOPBACK_HOSTS)}) is served, since "
                "the gateway has no authentication yet; put a reverse proxy that authenticates in front"
            )
        if self.log_level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
            problems.append(f"GSHARE_LOG_LEVEL={self.log_level!r}: write DEBUG, INFO, WARNING or ERROR")
        return problems

    def worker_count(self) -> int:
        """Data-plane processes to run."""
        return self.workers or max(1, _cores() // 4)

    def to_env(self) -> dict[str, str]:
        """Every setting as environment, so that a child process reads the same."""
        return {_env_name(f): _text(getattr(self, f.name)) for f in fields(self)}


def describe_settings() -> list[tuple[str, str, str]]:
    """(variable, default, meaning) of each setting, in order; the source of `docs/settings.md`."""
    meanings = field_meanings(Settings)
    return [(_env_name(f), _text(f.default), meanings[f.name]) for f in fields(Settings)]


def field_meanings(cls: type) -> dict[str, str]:
    """The text that follows each field in the source of a configuration class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(tree, ast.ClassDef)
    meanings: dict[str, str] = {}
    for node, following in zip(tree.body, tree.body[1:], strict=False):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and isinstance(following, ast.Expr):
            assert isinstance(following.value, ast.Constant)
            meanings[node.target.id] = " ".join(str(following.value.value).split())
    return meanings


def _env_name(spec: Field[Any]) -> str:
    return ENV_PREFIX + spec.name.upper()


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _unknown(env: Mapping[str, str], *, known: set[str]) -> list[str]:
    problems = []
    for name in sorted(env):
        if name.startswith(ENV_PREFIX) and name not in known:
            near = difflib.get_close_matches(name, sorted(known), n=1)
            problems.append(f"{name}: no such setting" + (f"; did you mean {near[0]}?" if near else ""))
    return problems


def _read(spec: Field[Any], text: str, *, values: dict[str, Any], problems: list[str]) -> None:
    name, low, high = _env_name(spec), spec.metadata["low"], spec.metadata["high"]
    try:
        value = spec.metadata["parse"](text)
    except ValueError as error:
        problems.append(f"{name}={text!r}: write {error}")
        return
    if (low is not None and value < low) or (high is not None and value > high):
        problems.append(
            f"{name}={text!r}: allowed is {low if low is not None else 0:g} to {high:g}"
            if high is not None
            else f"{name}={text!r}: at least {low:g}"
        )
        return
    values[spec.name] = value


def _absolute(values: dict[str, Any], cls: type[Settings], cwd: Path) -> dict[str, Any]:
    defaults = {f.name: f.default for f in fields(cls) if f.default is not MISSING}
    merged = defaults | values
    for name in ("home", "weights_root"):
        merged[name] = cwd / merged[name]
    merged["functions_path"] = tuple(str(cwd / part) for part in merged["functions_path"])
    return merged
