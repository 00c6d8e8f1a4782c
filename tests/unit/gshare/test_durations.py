from __future__ import annotations

import pytest
from gshare.durations import parse_duration_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300", 300),
        ("300s", 300),
        ("5m", 300),
        ("1h30m", 5400),
        ("500ms", 0.5),
        ("250us", 0.00025),
        ("250µs", 0.00025),
        ("20ns", 2e-8),
        ("1.5", 1.5),
        ("1.5h", 5400),
        ("0", 0),
        ("0s", 0),
        ('"300s"', 300),
    ],
)
def test_durations_are_gos_or_bare_seconds(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text",
    ["5 minutes", "-3s", "+3s", "", '""', '"3s', "300ss", "1e3", "1h 30m", "s", "٣s", "3S", "inf", "nan", "9" * 5000],
)
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a duration such as 300, 300s, 5m or 1h30m"):
        parse_duration_s(text)
