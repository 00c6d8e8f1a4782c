"""What a deploy, an update and a scale call make of a function's record. Pure.

**Revision.** The digest of everything that needs new replicas when it changes: code, environment, `fprocess`, secrets,
constraints, read-only root, partition, weights, and whether there is a device at all. Not in it, because it changes
while replicas run: the image's tag, labels, quotas, slo_ms, max_batch, max_batch_delay_ms.

**Memory.** Growing `gpu_mem` is live, shrinking it is not: a running process does not give memory back on request.
A digest of the value could not tell the two apart (grow and shrink back would give the first digest again, and
replicas with the larger memory would stay). So the record counts its shrinks, and that count is in the revision.
Example: 2Gi → 3Gi keeps the revision; 3Gi → 2Gi makes another one, the second time as well. No `gpu_mem` is no limit,
hence larger than any. A shrink below what a running replica uses is refused (409), unless the same update changes
code, weights or the like too: then the use measured says nothing about the replicas to come.
"""

from __future__ import annotations

import hashlib
import math

import msgspec
from gshare.config import MODEL_WEIGHTS
from gshare.share import GPU_MEM, Kind

from gateway_plugin.errors import BadRequest, Conflict
from gateway_plugin.model import SCALE_MAX, SCALE_MIN, FunctionRecord, FunctionSpec

REVISION_LENGTH = 16


def created(spec: FunctionSpec, *, code_digest: str, created_at: str) -> FunctionRecord:
    """The record of a new function: as many replicas as its scale.min label says."""
    low, _ = spec.scale_range()
    revision = revision_of(spec, code_digest=code_digest, memory_shrinks=0)
    return FunctionRecord(spec=spec, replicas=low, revision=revision, code_digest=code_digest, created_at=created_at)


def updated(
    before: FunctionRecord, spec: FunctionSpec, *, code_digest: str, used_memory_bytes: int = 0
) -> FunctionRecord:
    """The record after an update; the very same one where nothing changed.

    The wanted count stays within the new labels; a function scaled to zero stays there.
    `used_memory_bytes`: the most that one running replica uses.

    Raises:
        Conflict: less memory than a running replica uses.
    """
    shrinks = _memory_limit(spec) < _memory_limit(before.spec)
    unshrunk = revision_of(spec, code_digest=code_digest, memory_shrinks=before.memory_shrinks)
    if shrinks and unshrunk == before.revision:
        _refuse_below_use(spec, used_memory_bytes)
    memory_shrinks = before.memory_shrinks + shrinks
    after = msgspec.structs.replace(
        before,
        spec=spec,
        replicas=_within_labels(before.replicas, spec),
        revision=revision_of(spec, code_digest=code_digest, memory_shrinks=memory_shrinks),
        code_digest=code_digest,
        memory_shrinks=memory_shrinks,
    )
    return _next_generation(before, after)


def scaled(before: FunctionRecord, replicas: int) -> FunctionRecord:
    """The record with another wanted count: zero, or what the labels allow.

    A count outside the labels is refused rather than clamped, so that nobody is told "accepted" and gets another.

    Raises:
        BadRequest: naming the label that stands against it.
    """
    low, high = before.spec.scale_range()
    if replicas > high:
        raise BadRequest(f"replicas: {replicas} is above {SCALE_MAX} ({high}); ask for at most that or raise the label")
    if 0 < replicas < low:
        raise BadRequest(
            f"replicas: {replicas} is below {SCALE_MIN} ({low}); ask for 0 or {low}–{high}, or lower the label"
        )
    return _next_generation(before, msgspec.structs.replace(before, replicas=replicas))


class _Rolling(msgspec.Struct, frozen=True, kw_only=True):
    code: str
    environment: dict[str, str]
    env_process: str
    secrets: list[str]
    constraints: list[str]
    read_only_root: bool
    on_device: bool
    sm_partition: int
    weights: str
    memory_shrinks: int


def revision_of(spec: FunctionSpec, *, code_digest: str, memory_shrinks: int) -> str:
    """Digest of the rolling fields, by meaning: order, and where the weights are written down, do not matter."""
    asked = spec.share_request()
    rolling = _Rolling(
        code=code_digest,
        environment={name: value for name, value in spec.env_vars.items() if name != MODEL_WEIGHTS},
        env_process=spec.env_process,
        secrets=sorted(spec.secrets),
        constraints=sorted(spec.constraints),
        read_only_root=spec.read_only_root_filesystem,
        on_device=asked.kind is not Kind.PLAIN,
        sm_partition=asked.share.sm_partition,
        weights=spec.weights(),
        memory_shrinks=memory_shrinks,
    )
    return hashlib.sha256(msgspec.json.encode(rolling, order="sorted")).hexdigest()[:REVISION_LENGTH]


def _next_generation(before: FunctionRecord, after: FunctionRecord) -> FunctionRecord:
    return after if after == before else msgspec.structs.replace(after, generation=before.generation + 1)


def _memory_limit(spec: FunctionSpec) -> float:
    limit = spec.share_request().share.memory_bytes
    return math.inf if limit is None else limit


def _refuse_below_use(spec: FunctionSpec, used_bytes: int) -> None:
    if _memory_limit(spec) < used_bytes:
        raise Conflict(
            f"{GPU_MEM}: {spec.annotations[GPU_MEM]!r} is less than a running replica of {spec.service} uses now "
            f"({used_bytes} bytes); write at least {math.ceil(used_bytes / 2**20)}Mi"
        )


def _within_labels(replicas: int, spec: FunctionSpec) -> int:
    low, high = spec.scale_range()
    return 0 if replicas == 0 else min(max(replicas, low), high)
