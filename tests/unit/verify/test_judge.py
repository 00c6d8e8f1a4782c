"""From figures to verdicts: what passes, what fails and who is to blame, and what nobody can tell."""

from __future__ import annotations

import pytest

from gateway_plugin.verify.figures import Finding, ProbeFigures, SideFigures, Source, Verdict
from gateway_plugin.verify.judge import judge_shares, judge_side_by_side, overall


def figures(
    name: str,
    asked: float,
    *,
    counted: float | None = None,
    ledger: float | None = None,
    alone_rates: tuple[float, ...] = (100.0, 101.0, 99.0, 100.0),
    edge: float = 0.005,
    elsewhere: float = 0.0,
    core_rate: float | None = None,
    wanted: float = 1.0,
    waited: float = 0.4,
    gated: bool = True,
    lost_scheduler: str = "",
) -> ProbeFigures:
    """A probe that got what it asked for, unless said otherwise."""
    return ProbeFigures(
        name=name,
        asked=asked,
        gated=gated,
        alone_rates=alone_rates,
        together_rate=100.0 * (asked if counted is None else counted),
        ledger_share=asked if ledger is None else ledger,
        by_second=(30, 31),
        wanted=wanted,
        waited=waited,
        edge=edge,
        elsewhere=elsewhere,
        core_rate=core_rate,
        lost_scheduler=lost_scheduler,
    )


def judged(*probes: ProbeFigures, others: float = 0.0) -> dict[tuple[str, Source], Finding]:
    return {(one.what, one.source): one for one in judge_shares(probes, others=others)}


def counted(findings: dict[tuple[str, Source], Finding], name: str) -> Finding:
    return findings[f"share of {name}", Source.COUNTED]


def test_shares_as_asked_pass_in_every_figure() -> None:
    findings = judge_shares([figures("a", 0.3), figures("b", 0.6)], others=0.0)
    assert [one.what for one in findings] == ["share of a"] * 2 + ["share of b"] * 2 + ["completions, b to a"]
    assert {one.verdict for one in findings} == {Verdict.PASS}
    assert findings[-1].asked == pytest.approx(2.0) and findings[-1].measured == pytest.approx(2.0)
    assert overall(findings) == (Verdict.PASS, "every share is as asked")


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (0.30, Verdict.PASS),
        (0.319, Verdict.PASS),
        (0.281, Verdict.PASS),
        (0.325, Verdict.UNCLEAR),  # beyond the tolerance, but not beyond what noise can do
        (0.275, Verdict.UNCLEAR),
        (0.34, Verdict.FAIL),
        (0.26, Verdict.FAIL),
    ],
)
def test_a_counted_share_fails_beyond_tolerance_and_noise_together(measured: float, verdict: Verdict) -> None:
    findings = judged(figures("a", 0.3, counted=measured, ledger=measured), figures("b", 0.6))
    assert counted(findings, "a").verdict is verdict


def test_a_probe_over_its_limit_is_named_and_its_victims_shortfall_is_laid_to_it() -> None:
    probes = [figures("a", 0.3, counted=0.2), figures("b", 0.6, counted=0.8, ledger=0.8)]
    findings = judge_shares(probes, others=0.0)
    assert overall(findings) == (Verdict.FAIL, "b broke its share")
    by_name = judged(*probes)
    assert counted(by_name, "b").reason == "more than its limit"
    assert counted(by_name, "a").reason == "less than its request, since b took more"
    assert counted(by_name, "a").broke == ""


def test_a_probe_that_computes_without_tokens_is_found_even_below_its_share() -> None:
    free = figures("b", 0.6, counted=0.5, ledger=0.0, waited=0.0, gated=False)
    findings = judged(figures("a", 0.3, counted=0.2), free)
    assert counted(findings, "b").verdict is Verdict.FAIL
    assert counted(findings, "b").reason == "it computed without a token: the ledger has only 0.00"
    assert findings["share of b", Source.SCHEDULER].reason == "it did not ask for tokens"
    assert overall(list(findings.values())) == (Verdict.FAIL, "b broke its share")


def test_a_ledger_that_shows_more_than_the_limit_fails_whatever_was_counted() -> None:
    findings = judged(figures("a", 0.3, ledger=0.4), figures("b", 0.6))
    assert findings["share of a", Source.SCHEDULER].broke == "a"
    assert counted(findings, "a").verdict is Verdict.PASS


def test_less_than_asked_for_without_a_culprit_is_a_failure_with_its_figure_named() -> None:
    findings = judge_shares([figures("a", 0.3), figures("b", 0.6, counted=0.4, ledger=0.4)], others=0.0)
    verdict, summary = overall(findings)
    assert verdict is Verdict.FAIL
    assert "share of b: less than its request" in summary


@pytest.mark.parametrize(
    "light",
    [
        figures("a", 0.3, counted=0.1, ledger=0.1, wanted=0.4, waited=0.1),
        figures("a", 0.3, counted=0.3, ledger=0.3, wanted=1.0, waited=0.0),
    ],
)
def test_a_load_with_rests_or_that_never_waited_for_a_token_cannot_be_judged(light: ProbeFigures) -> None:
    findings = judge_shares([light, figures("b", 0.6)], others=0.0)
    verdict, summary = overall(findings)
    assert verdict is Verdict.UNCLEAR
    assert "the load of a was too light to judge" in summary


def test_a_light_load_over_its_limit_fails_all_the_same() -> None:
    findings = judged(figures("a", 0.3, counted=0.5, ledger=0.5, wanted=0.6), figures("b", 0.6))
    assert counted(findings, "a").verdict is Verdict.FAIL


def test_a_share_of_everything_needs_no_waiting() -> None:
    assert counted(judged(figures("a", 1.0, waited=0.0), figures("b", 0.6)), "a").verdict is Verdict.PASS


def test_beside_others_a_shortfall_says_nothing_and_an_excess_does() -> None:
    short = judged(figures("a", 0.3, counted=0.2, ledger=0.2), figures("b", 0.6), others=0.2)
    assert counted(short, "a").verdict is Verdict.UNCLEAR
    assert counted(short, "a").reason == "others used 20% of the device meanwhile"
    over = judged(figures("a", 0.3, counted=0.4, ledger=0.4), figures("b", 0.6), others=0.2)
    assert counted(over, "a").verdict is Verdict.FAIL


def test_rates_alone_that_vary_too_much_can_only_show_what_is_far_off() -> None:
    noisy = (100.0, 80.0, 120.0, 100.0)
    near = judged(figures("a", 0.3, alone_rates=noisy), figures("b", 0.6))
    assert counted(near, "a").verdict is Verdict.UNCLEAR
    assert "too uncertain" in counted(near, "a").reason
    assert near["share of a", Source.SCHEDULER].verdict is Verdict.PASS
    far = judged(figures("a", 0.3, counted=0.6, ledger=0.3, alone_rates=noisy), figures("b", 0.6))
    assert counted(far, "a").verdict is Verdict.FAIL


def test_a_shortfall_that_other_processes_may_have_caused_cannot_be_judged_and_an_excess_can() -> None:
    short = figures("a", 0.3, counted=0.2, ledger=0.25, elsewhere=0.2)
    findings = judged(short, figures("b", 0.6, elsewhere=0.2))
    assert counted(findings, "a").verdict is Verdict.UNCLEAR
    assert "other processes used the same cores" in counted(findings, "a").reason
    assert findings["share of a", Source.SCHEDULER].verdict is Verdict.UNCLEAR
    assert findings["completions, b to a", Source.COUNTED].verdict is Verdict.UNCLEAR
    over = judged(figures("a", 0.3, counted=0.4, elsewhere=0.2), figures("b", 0.6))
    assert counted(over, "a").verdict is Verdict.FAIL
    far = judged(figures("a", 0.6, counted=0.3, elsewhere=0.05), figures("b", 0.3))
    assert counted(far, "a").verdict is Verdict.FAIL


def test_a_core_that_was_slower_meanwhile_is_no_broken_share_and_rates_alone_are_no_noise_there() -> None:
    slow = figures("b", 0.6, counted=0.3, ledger=0.6, core_rate=50.0, alone_rates=(100.0, 60.0, 140.0))
    findings = judged(figures("a", 0.3), slow)
    assert counted(findings, "b").verdict is Verdict.PASS
    assert counted(findings, "b").measured == pytest.approx(0.6)


def test_a_run_of_few_windows_and_blocks_cannot_be_judged() -> None:
    findings = judged(figures("a", 0.3, edge=0.03), figures("b", 0.6))
    assert findings["share of a", Source.SCHEDULER].verdict is Verdict.UNCLEAR
    assert findings["completions, b to a", Source.COUNTED].verdict is Verdict.UNCLEAR


def test_a_probe_that_lost_its_scheduler_cannot_be_judged_and_says_why() -> None:
    findings = judged(figures("a", 0.3, lost_scheduler="peer gone"), figures("b", 0.6))
    assert counted(findings, "a").reason == "a lost its scheduler: peer gone"


@pytest.mark.parametrize(
    ("second", "verdict"), [(0.6, Verdict.PASS), (0.575, Verdict.PASS), (0.56, Verdict.FAIL), (0.65, Verdict.FAIL)]
)
def test_the_ratio_of_completions_is_held_to_five_percent(second: float, verdict: Verdict) -> None:
    steady = (100.0, 100.0)
    a = figures("a", 0.3, alone_rates=steady, edge=0.0)
    b = figures("b", 0.6, alone_rates=steady, edge=0.0, counted=second, ledger=second)
    finding = judged(a, b)["completions, b to a", Source.COUNTED]
    assert finding.verdict is verdict
    assert finding.measured == pytest.approx(second / 0.3)


def side(
    *gated_rates: float,
    free_rates: tuple[float, ...] = (100.0, 101.0, 99.0),
    elsewhere: float = 0.0,
    lost_scheduler: str = "",
) -> SideFigures:
    return SideFigures(
        name="a",
        free_rates=free_rates,
        gated_rates=gated_rates,
        elsewhere=elsewhere,
        lost_scheduler=lost_scheduler,
    )


@pytest.mark.parametrize(
    ("figures", "verdict"),
    [
        (side(100.0, 99.0), Verdict.PASS),
        (side(120.0, 130.0), Verdict.PASS),  # nothing is lost
        (side(50.0, 52.0), Verdict.FAIL),
        (side(100.0, free_rates=(100.0, 140.0)), Verdict.UNCLEAR),
        (side(80.0, elsewhere=0.3), Verdict.UNCLEAR),
        (side(50.0, lost_scheduler="peer gone"), Verdict.UNCLEAR),
    ],
)
def test_a_probe_on_its_own_units_loses_nothing_to_a_neighbour(figures: SideFigures, verdict: Verdict) -> None:
    (finding,) = judge_side_by_side([figures], others=0.0)
    assert finding.verdict is verdict
