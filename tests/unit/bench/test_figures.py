import pytest

from bench.figures import Bound, Wish, alternate, figure, percentile


def ignore(line: str) -> None: ...


def test_sides_are_measured_in_turn_and_every_other_round_backwards() -> None:
    order: list[str] = []

    def side(name: str) -> int:
        order.append(name)
        return len(order)

    samples = alternate({"a": lambda: side("a"), "b": lambda: side("b")}, runs=3, say=ignore)

    assert order == ["a", "b", "b", "a", "a", "b"]
    assert samples == {"a": [1, 4, 5], "b": [2, 3, 6]}


def test_progress_says_which_run_of_which_side() -> None:
    said: list[str] = []

    alternate({"gateway": lambda: 0, "replica": lambda: 0}, runs=1, say=said.append)

    assert said == ["run 1 of 1: gateway", "run 1 of 1: replica"]


def test_a_figure_is_the_median_with_the_smallest_and_largest_run() -> None:
    made = figure("latency", [9.0, 2.0, 3.0], unit="ms", definition="…")

    assert (made.value, made.low, made.high, made.runs) == (3.0, 2.0, 9.0, 3)
    assert made.met is None


@pytest.mark.parametrize(
    ("wish", "value", "met"),
    [(Wish.AT_MOST, 5.0, True), (Wish.AT_MOST, 5.1, False), (Wish.AT_LEAST, 5.0, True), (Wish.AT_LEAST, 4.9, False)],
)
def test_a_bound_is_judged_on_the_median(wish: Wish, value: float, met: bool) -> None:
    made = figure("x", [0.0, value, 99.0], unit="ms", definition="…", bound=Bound(wish, 5.0))

    assert made.met is met


@pytest.mark.parametrize(("percent", "value"), [(50, 50), (99, 99), (100, 100), (0.1, 1)])
def test_a_percentile_is_a_value_that_was_measured(percent: float, value: float) -> None:
    assert percentile(list(range(100, 0, -1)), percent) == value


def test_a_percentile_of_one_value_is_that_value() -> None:
    assert percentile([7.0], 99) == 7.0
