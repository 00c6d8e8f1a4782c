"""A replica's own pace while nobody gives it tokens."""

from __future__ import annotations

import pytest
from gshare.pace import Pace


def test_the_first_block_may_begin_at_once() -> None:
    assert Pace(rate=0.25, window_s=0.2).wait_s(0.0) == 0


def test_the_whole_device_never_waits() -> None:
    pace = Pace(rate=1.0, window_s=0.2)
    pace.spent(100.0, 1.0)

    assert pace.wait_s(1.0) == 0


def test_what_was_used_beyond_the_rate_is_waited_for() -> None:
    pace = Pace(rate=0.25, window_s=0.2)
    pace.wait_s(0.0)

    pace.spent(0.15, 0.15)  # 0.05 to begin with, 0.0375 came in meanwhile, of which the cap leaves nothing

    assert pace.wait_s(0.15) == pytest.approx(0.1 / 0.25, abs=0.001)
    assert pace.wait_s(0.15 + 0.41) == 0


def test_in_the_long_run_the_rate_is_kept() -> None:
    pace, now_s, used_s = Pace(rate=0.3, window_s=0.2), 0.0, 0.0

    while now_s < 100:
        now_s += pace.wait_s(now_s)
        now_s, used_s = now_s + 0.017, used_s + 0.017
        pace.spent(0.017, now_s)

    assert used_s / now_s == pytest.approx(0.3, abs=0.005)


@pytest.mark.parametrize("rate", [0.0, -1.0, 1.5])
def test_a_rate_that_is_none_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="above 0, at most 1"):
        Pace(rate=rate, window_s=0.2)
