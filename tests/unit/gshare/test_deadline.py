from __future__ import annotations

import pytest
from gshare.deadline import NO_DEADLINE, call_deadline
from gshare.errors import BadInput
from werkzeug.datastructures import Headers


def limit_s(exec_timeout_s: float, x_timeout: str | None = None) -> float:
    return call_deadline(Headers({} if x_timeout is None else {"X-Timeout": x_timeout}), exec_timeout_s).limit_s


def test_a_client_may_shorten_the_limit_and_never_lengthen_it() -> None:
    assert limit_s(60) == 60
    assert limit_s(60, "5s") == 5
    assert limit_s(60, "2m") == 60


def test_no_limit_stays_none_unless_the_client_sets_one() -> None:
    assert call_deadline(Headers(), 0) is NO_DEADLINE
    assert NO_DEADLINE.remaining_s() is None
    assert limit_s(0, "5s") == 5


@pytest.mark.parametrize("text", ["5 minutes", "-3s", "soon", "0", "9" * 5000])
def test_a_header_that_is_no_duration_is_refused_by_name(text: str) -> None:
    with pytest.raises(BadInput, match=r"X-Timeout: '") as caught:
        limit_s(60, text)
    assert len(str(caught.value)) < 250


def test_a_deadline_that_has_passed_has_nothing_left_and_says_whose_it_was() -> None:
    deadline = call_deadline(Headers({"X-Timeout": "1ns"}), 60)

    assert deadline.remaining_s() == 0
    assert str(deadline.exceeded("no answer")) == "no answer within 1e-09 s (X-Timeout: 1ns)"
    assert str(call_deadline(Headers(), 60).exceeded("no answer")) == "no answer within 60 s (exec_timeout=60s)"
