"""The types that rooms share. Facts only: no I/O, and nothing here decides.

Everything that goes through Redis or a socket is a msgspec struct, so that reading it back checks it.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec
from gshare.config import MODEL_WEIGHTS
from gshare.share import Kind, ShareRequest, parse_share
from gshare.wire import LiveConfig

from gateway_plugin.errors import BadRequest

DEFAULT_NAMESPACE = "openfaas-fn"
NAME_RULE = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME_LENGTH = 63
_NAME = re.compile(NAME_RULE)
ROUTE_NAME = re.compile(r"[-A-Za-z0-9_.]+")
"""What OpenFaaS's router takes for NAME in a path; anything else is 404."""
SCALE_MIN = "com.openfaas.scale.min"
SCALE_MAX = "com.openfaas.scale.max"
DEFAULT_MIN_REPLICAS = 1
DEFAULT_MAX_REPLICAS = 20


def valid_name(name: str) -> bool:
    """Whether `name` can be a function's: a DNS label of at most 63 characters."""
    return len(name) <= NAME_LENGTH and _NAME.fullmatch(name) is not None


def canonical_name(name: str) -> str:
    """`name.namespace`, the form of every key and label; a bare name is in the default namespace."""
    return name if "." in name else f"{name}.{DEFAULT_NAMESPACE}"


class FunctionSpec(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """The body of POST and PUT /system/functions, in OpenFaaS's own names (openfaas-contract §1.2)."""

    service: str
    image: str
    namespace: str = ""
    env_process: str = ""
    env_vars: dict[str, str] = {}
    constraints: list[str] = []
    secrets: list[str] = []
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    read_only_root_filesystem: bool = False

    @property
    def name(self) -> str:
        """Canonical: `service.namespace`."""
        return f"{self.service}.{self.namespace or DEFAULT_NAMESPACE}"

    def share_request(self) -> ShareRequest:
        """Raises: gshare.share.ShareError."""
        return parse_share(self.annotations)

    def weights(self) -> str:
        """Source of the model's weights: the annotation, else MODEL_WEIGHTS; empty: the function's own default."""
        return self.share_request().weights or self.env_vars.get(MODEL_WEIGHTS, "")

    def scale_range(self) -> tuple[int, int]:
        """(min, max) replicas by OpenFaaS's labels. Raises: BadRequest naming label, value and rule."""
        low = _label_count(self.labels, SCALE_MIN, DEFAULT_MIN_REPLICAS)
        high = _label_count(self.labels, SCALE_MAX, max(DEFAULT_MAX_REPLICAS, low))
        if low > high:
            raise BadRequest(f"{SCALE_MIN}: {low} is above {SCALE_MAX} ({high}); lower the one or raise the other")
        return low, high


def _label_count(labels: dict[str, str], key: str, default: int) -> int:
    text = labels.get(key)
    if text is None:
        return default
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= 1000:
        raise BadRequest(f"label {key}: {text!r} is not accepted; a whole number, 1–1000")
    return int(text)


class FunctionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of one function; the value of Redis key `gshare:function:{name.ns}`."""

    spec: FunctionSpec
    replicas: int
    """Wanted count: set by deploy and scale, raised from zero by a request."""
    revision: str
    """Digest of code and rolling fields; another revision means new replicas."""
    code_digest: str
    """SHA-256 of the function's folder: its snapshot lies under `code/`."""
    created_at: str
    """RFC 3339, of the first deploy."""
    generation: int = 1
    """Counts accepted changes; a call that changes nothing is none."""
    memory_shrinks: int = 0
    """How often an update lowered `gpu_mem`: part of the revision, since growing is live and shrinking is not."""
    v: int = 1

    @property
    def name(self) -> str:
        return self.spec.name


class Device(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU, a MIG instance or the cores of this machine."""

    id: str
    """GPU or MIG UUID, or `cpu:0`."""
    kind: str
    """E.g. `Tesla V100-SXM2-16GB`, or `cpu`."""
    units: int
    """What a partition is counted in: SM pairs on cuda, cores on cpu."""
    memory_bytes: int
    node: str = "localhost"
    cores: tuple[int, ...] = ()
    """cpu: its core numbers, unit i being core `cores[i]`."""


class Place(msgspec.Struct, frozen=True):
    """Where a replica lies: a device and the indices of its units there."""

    device: str
    units: tuple[int, ...]


class ReplicaState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    FAILED = "failed"


class ReplicaSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the node needs to run one replica."""

    id: str
    function: str
    """Canonical name."""
    revision: str
    code_digest: str
    slot: int
    """Column of this replica in the shared in-flight counters."""
    env: dict[str, str] = {}
    """The function's own environment."""
    weights: str = ""
    kind: Kind = Kind.PLAIN
    sm_partition: int = 100
    place: Place | None = None
    """None: a plain function, without a device."""
    live: LiveConfig = LiveConfig()
    live_version: int = 1
    max_inflight: int = 16
    replaces: str = ""
    """Id of the replica whose place it borrows until that one is drained."""


class ReplicaStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the node says of one replica it runs."""

    spec: ReplicaSpec
    state: ReplicaState
    reason: str = ""
    degraded: str = ""
    """Why it is not held to its units, though it runs; empty: it is."""
    ungated_device_use: bool = False
    """It computes on its cores beyond its tokens and what is allowed for requests' handling (CPU devices only)."""
    pid: int = 0
    endpoint: str = ""
    """`unix:PATH` of its HTTP server."""
    weights: str = ""
    weights_digest: str = ""
    memory_bytes: int = 0
    warmup_ms: float = 0.0
    acked_version: int = 0
    """Version of the live settings that are in force."""
    ack_error: str = ""
    started_at: float = 0.0
    """Unix time of its start."""
    since: float = 0.0
    """Unix time since which it is in this state."""
    exit_code: int | None = None


class Route(msgspec.Struct, frozen=True, array_like=True):
    """One replica that may be sent requests."""

    replica: str
    slot: int
    endpoint: str
    max_inflight: int


class FunctionRoutes(msgspec.Struct, frozen=True):
    """A known function; no replicas means that requests wait (and wake it up)."""

    replicas: tuple[Route, ...] = ()
    wanted: int = 1
    """Replicas wanted; 0: a request has to wake it."""


class RouteTable(msgspec.Struct, frozen=True):
    """Value and message of `gshare:routes`: all functions by canonical name."""

    version: int
    functions: dict[str, FunctionRoutes] = {}
    v: int = 1


class FunctionStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What the loop says of one function; field of Redis hash `gshare:status`."""

    name: str
    ready: int = 0
    pending: int = 0
    """Wanted replicas that have no place."""
    reason: str = ""
    """Why replicas are pending or failing; empty when all is well."""
    failures: int = 0
    """Failed attempts in a row of the wanted revision."""
    replicas: tuple[ReplicaStatus, ...] = ()
    v: int = 1


def share_text(spec: FunctionSpec) -> str:
    """A share as people read it, e.g. `24 % × 0.15–1.00`; `-` for a plain function."""
    asked = spec.share_request()
    if asked.kind is Kind.PLAIN:
        return "-"
    share = asked.share
    return f"{share.sm_partition} % × {share.quota_request:.2f}–{share.quota_limit:.2f}"
