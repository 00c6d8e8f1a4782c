"""Whether a replica on a CPU device computes without tokens, judged second by second. Pure.

Some CPU time without a token is no fault: requests are decoded and answers encoded beside the model. What counts is
CPU time beyond the tokens' cores and beyond an allowance for that work, after a burst that may have other reasons. So a
replica is a bucket: excess flows in, the allowance flows out, and what overflows is device use without a token.
"""

from __future__ import annotations

from dataclasses import dataclass

ALLOWANCE_CORES = 0.2
"""For HTTP, decoding and encoding of one replica."""
BURST_CORE_S = 2.0
"""How much may gather beyond the allowance: one core without any token is noticed after two and a half seconds."""


@dataclass(frozen=True, slots=True)
class Interval:
    """What a replica did between two looks."""

    length_s: float
    cpu_s: float
    """CPU time of everything it has started."""
    token_s: float
    """Device time that its tokens account for: booked use, and how long the token that is out has been held."""
    units: int
    """Cores that a token of it stands for."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What is known of one replica so far."""

    level_core_s: float = 0.0
    ungated_core_s: float = 0.0
    """Computed without a token, beyond allowance and burst, in all."""
    ungated: bool = False


def judge(before: Standing, seen: Interval) -> Standing:
    """The standing after one more interval; the mark goes only once the bucket has run empty."""
    # A token that was held idle is booked at once when it comes back: then its time is not that of this interval.
    covered_core_s = min(max(seen.token_s, 0.0), seen.length_s) * seen.units
    excess_core_s = seen.cpu_s - covered_core_s - ALLOWANCE_CORES * seen.length_s
    level_core_s = max(0.0, before.level_core_s + excess_core_s)
    over_core_s = max(0.0, level_core_s - BURST_CORE_S)
    return Standing(
        level_core_s=level_core_s - over_core_s,
        ungated_core_s=before.ungated_core_s + over_core_s,
        ungated=over_core_s > 0 or (before.ungated and level_core_s > 0),
    )
