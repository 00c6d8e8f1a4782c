"""What a function asks of a device, as its owner writes it: the `fastgshare/` annotations.

The four names of the authors' FaSTPod come first, so that their manifests carry over; the rest are ours.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "fastgshare/"
SM_PARTITION = PREFIX + "gpu_sm_partition"
QUOTA_REQUEST = PREFIX + "gpu_quota_request"
QUOTA_LIMIT = PREFIX + "gpu_quota_limit"
GPU_MEM = PREFIX + "gpu_mem"
SLO_MS = PREFIX + "slo_ms"
MAX_BATCH = PREFIX + "max_batch"
MAX_BATCH_DELAY_MS = PREFIX + "max_batch_delay_ms"
WEIGHTS = PREFIX + "weights"
ANNOTATIONS = (SM_PARTITION, QUOTA_REQUEST, QUOTA_LIMIT, GPU_MEM, SLO_MS, MAX_BATCH, MAX_BATCH_DELAY_MS, WEIGHTS)

DEFAULT_MAX_BATCH = 1
DEFAULT_MAX_BATCH_DELAY_MS = 0.0
MIN_MEMORY_BYTES = 64 * 1024**2
MAX_BATCH_ALLOWED = 1024
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(k|M|G|T|Ki|Mi|Gi|Ti)?")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_WEIGHTS_FORM = re.compile(r"random:[0-9]{1,9}|file:[^\x00-\x20]+|hf:[\w.-]+(?:/[\w.-]+)?(?:@[\w./-]+)?")


class ShareError(ValueError):
    """One annotation that cannot be accepted. The text names key, value, what is allowed and what to write."""

    def __init__(self, key: str, value: str, allowed: str) -> None:
        self.key, self.value, self.allowed = key, value, allowed
        super().__init__(f"{key}: {value!r} is not accepted; {allowed}")


class Kind(StrEnum):
    """Who decides a function's share of a device."""

    PLAIN = "plain"
    """No `fastgshare/` key: no device, no gate, no placement."""
    PINNED = "pinned"
    """Its owner wrote a partition or a quota down."""
    CHOSEN = "chosen"
    """Some key but no share: the autoscaler picks from the profiles."""


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A share of one device: percent of its SMs (or cores) × fraction of its time × memory."""

    sm_partition: int = 100
    """Percent of the device's SMs, 1–100."""
    quota_request: float = 1.0
    """Guaranteed fraction of the time window, in (0, quota_limit]."""
    quota_limit: float = 1.0
    """Most of the time window it may use, in (0, 1]."""
    memory_bytes: int | None = None
    """Device memory it may use; None until it has been measured."""

    def units(self, device_units: int) -> int:
        """How many of a device's units the partition takes: ceil(partition · units / 100), at least one."""
        return max(1, math.ceil(self.sm_partition * device_units / 100))


@dataclass(frozen=True, slots=True)
class ShareRequest:
    """Everything the `fastgshare/` annotations of one function say."""

    kind: Kind = Kind.PLAIN
    share: GpuShare = GpuShare()
    slo_ms: float | None = None
    max_batch: int = DEFAULT_MAX_BATCH
    max_batch_delay_ms: float = DEFAULT_MAX_BATCH_DELAY_MS
    weights: str | None = None


def parse_share(annotations: Mapping[str, str]) -> ShareRequest:
    """Read a function's annotations; keys of others are left alone.

    Raises:
        ShareError: for the first key that is unknown or whose value is out of range.
    """
    ours = {key: value for key, value in annotations.items() if key.startswith(PREFIX)}
    if not ours:
        return ShareRequest()
    refuse_unknown(ours)
    written = {SM_PARTITION, QUOTA_REQUEST, QUOTA_LIMIT} & ours.keys()
    return ShareRequest(
        kind=Kind.PINNED if written else Kind.CHOSEN,
        share=_share(ours),
        slo_ms=_positive(ours, SLO_MS, high=3_600_000.0),
        max_batch=int(_whole(ours, MAX_BATCH, high=MAX_BATCH_ALLOWED) or DEFAULT_MAX_BATCH),
        max_batch_delay_ms=_delay(ours),
        weights=_weights(ours),
    )


def refuse_unknown(annotations: Mapping[str, str]) -> None:
    """Raises: ShareError for a `fastgshare/` key nobody defined, with the nearest one that is."""
    for key, value in sorted(annotations.items()):
        if key.startswith(PREFIX) and key not in ANNOTATIONS:
            near = difflib.get_close_matches(key, ANNOTATIONS, n=1, cutoff=0.0)[0]
            raise ShareError(key, value, f"no such annotation; did you mean {near}? Known: {', '.join(ANNOTATIONS)}")


def parse_memory_bytes(key: str, text: str) -> int:
    """Bytes of a quantity such as `2Gi`, `500M` or `2700000000`, at least 64 MiB.

    Raises:
        ShareError: not a quantity, or too small to mean bytes.
    """
    match = _QUANTITY.fullmatch(text.strip())
    if match is None:
        raise ShareError(key, text, "write bytes or a quantity, e.g. 2700000000, 2700M or 2Gi")
    size = int(float(match[1]) * _UNITS[match[2] or ""]) if match[2] else _bytes(key, text, match[1])
    if size < MIN_MEMORY_BYTES:
        hint = f"; bytes: did you mean {match[1]}M?" if match[2] is None else ""
        raise ShareError(key, text, f"at least 64Mi (67108864 bytes){hint}")
    return size


def _bytes(key: str, text: str, digits: str) -> int:
    if "." in digits:
        raise ShareError(key, text, f"bytes are whole numbers; did you mean {digits}G?")
    return int(digits)


def _share(ours: Mapping[str, str]) -> GpuShare:
    partition = _partition(ours)
    limit = _quota(ours, QUOTA_LIMIT)
    request = _quota(ours, QUOTA_REQUEST)
    ceiling = 1.0 if limit is None else limit
    if request is not None and request > ceiling:
        raise ShareError(
            QUOTA_REQUEST, ours[QUOTA_REQUEST], f"at most {QUOTA_LIMIT} ({ceiling:g}); lower it or raise the limit"
        )
    memory = parse_memory_bytes(GPU_MEM, ours[GPU_MEM]) if GPU_MEM in ours else None
    return GpuShare(partition, ceiling if request is None else request, ceiling, memory)


def _partition(ours: Mapping[str, str]) -> int:
    text = ours.get(SM_PARTITION)
    if text is None:
        return 100
    allowed = "a whole percent of the device's SMs, 1–100"
    number = _number(SM_PARTITION, text, allowed)
    if 0 < number < 1:
        raise ShareError(SM_PARTITION, text, f"{allowed}; percent: did you mean {number * 100:g}?")
    if number != int(number) or not 1 <= number <= 100:
        raise ShareError(SM_PARTITION, text, allowed)
    return int(number)


def _quota(ours: Mapping[str, str], key: str) -> float | None:
    text = ours.get(key)
    if text is None:
        return None
    allowed = "a fraction of the time window, above 0 and at most 1"
    number = _number(key, text, allowed)
    if 1 < number <= 100:
        raise ShareError(key, text, f"{allowed}; did you mean {number / 100:g}?")
    if not 0 < number <= 1:
        raise ShareError(key, text, allowed)
    return number


def _positive(ours: Mapping[str, str], key: str, *, high: float) -> float | None:
    if key not in ours:
        return None
    allowed = f"milliseconds, above 0 and at most {high:g}"
    number = _number(key, ours[key], allowed)
    if not 0 < number <= high:
        raise ShareError(key, ours[key], allowed)
    return number


def _delay(ours: Mapping[str, str]) -> float:
    text = ours.get(MAX_BATCH_DELAY_MS)
    if text is None:
        return DEFAULT_MAX_BATCH_DELAY_MS
    allowed = "milliseconds a request may wait for company, 0–60000"
    number = _number(MAX_BATCH_DELAY_MS, text, allowed)
    if not 0 <= number <= 60_000:
        raise ShareError(MAX_BATCH_DELAY_MS, text, allowed)
    return number


def _whole(ours: Mapping[str, str], key: str, *, high: int) -> int | None:
    if key not in ours:
        return None
    allowed = f"a whole number, 1–{high}"
    number = _number(key, ours[key], allowed)
    if number != int(number) or not 1 <= number <= high:
        raise ShareError(key, ours[key], allowed)
    return int(number)


def _weights(ours: Mapping[str, str]) -> str | None:
    return parse_weights(WEIGHTS, ours[WEIGHTS]) if WEIGHTS in ours else None


def parse_weights(key: str, text: str) -> str:
    """The text itself if it names weights: `hf:REPO@REV`, `file:PATH` or `random:SEED`.

    Raises:
        ShareError: any other form.
    """
    if not _WEIGHTS_FORM.fullmatch(text):
        raise ShareError(key, text, "write hf:OWNER/REPO@REVISION, file:PATH under GSHARE_WEIGHTS_ROOT, or random:SEED")
    return text


def _number(key: str, text: str, allowed: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise ShareError(key, text, allowed)
    return float(text)
