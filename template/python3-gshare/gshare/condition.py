"""Where a replica stands, and what is known of it by then."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Phase(StrEnum):
    """Where a replica stands."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    DRAINING = "draining"


@dataclass(frozen=True, slots=True)
class Condition:
    """Phase, and what is known by then."""

    phase: Phase = Phase.LOADING
    reason: str = "starting"
    weights: str = ""
    weights_digest: str = ""
    memory_bytes: int = 0
    warmup_ms: float = 0.0
