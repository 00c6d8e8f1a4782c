"""One request of the fuzzer."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Shot:
    """What is sent, and of which kind it is in the table."""

    kind: str
    body: bytes
    path: str = "/"
    headers: dict[str, str] = field(default_factory=dict)
