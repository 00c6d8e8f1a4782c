"""Durations as people write them: Go's form, as in every setting of OpenFaaS, or bare seconds."""

from __future__ import annotations

import math
import re

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_UNIT_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_QUOTED = re.compile(r'"(.*)"')
LONGEST_TEXT = 64


def parse_duration_s(text: str) -> float:
    """Seconds of a Go duration (`1h30m`, `500ms`) or of bare seconds (`300`).

    A pair of double quotes around it is taken off: an env file leaves them where a shell does not.

    Raises:
        ValueError: anything else, a sign or an exponent included.
    """
    quoted = _QUOTED.fullmatch(text)
    bare = quoted[1] if quoted else text
    seconds = _seconds(bare) if len(bare) <= LONGEST_TEXT else math.nan
    if not math.isfinite(seconds):
        raise ValueError("a duration such as 300, 300s, 5m or 1h30m")
    return seconds


def _seconds(text: str) -> float:
    if _SECONDS.fullmatch(text):
        return float(text)
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return math.nan
    return float(sum(float(number) * _UNIT_S[unit] for number, unit in parts))
