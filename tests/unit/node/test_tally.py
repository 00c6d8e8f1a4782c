"""Counting a probe's blocks: only those that end in the stretch, with the times of the same stretch."""

from __future__ import annotations

from gshare.turn import Gating, TurnCounts

from gateway_plugin.node.tally import Block, Tally
from gateway_plugin.probe_protocol import Ran, Run

ASKED = Run(1, True, begin_s=10.0, count_s=11.0, end_s=13.0, slice_s=0.5)


def tallied(*blocks: tuple[float, float, float]) -> Ran:
    """Blocks as (at hand since, ended at, device time used in all by then)."""
    tally = Tally(ASKED, counts=TurnCounts(used_s=5.0, tokens=3), cpu_s=1.0)
    for number, (wanted_s, ended_s, used_s) in enumerate(blocks, start=4):
        counts = TurnCounts(used_s=used_s, waited_s=number, tokens=number)
        begun_s = (wanted_s + ended_s) / 2
        tally.add(Block(wanted_s=wanted_s, begun_s=begun_s, ended_s=ended_s, cpu_s=used_s - 4.0, counts=counts))
    return tally.result(gating=Gating.TOKENS, reason="")


def test_blocks_before_and_after_the_stretch_do_not_count() -> None:
    ran = tallied((10.0, 10.6, 5.6), (10.6, 11.2, 6.2), (11.2, 12.9, 7.9), (12.9, 13.4, 8.4))
    assert ran.completed == 2
    assert ran.by_slice == (1, 0, 0, 1)


def test_times_are_those_between_the_last_ends_of_blocks_before_either_edge() -> None:
    ran = tallied((10.0, 10.6, 5.6), (10.6, 11.2, 6.2), (11.2, 12.9, 7.9), (12.9, 13.4, 8.4))
    assert round(ran.span_s, 9) == round(ran.used_s, 9) == round(ran.cpu_s, 9) == 2.3
    assert round(ran.longest_block_s, 9) == 0.85
    assert ran.waited_s == 2
    assert ran.tokens == 2


def test_time_with_a_block_at_hand_is_cut_to_the_stretch_and_rests_are_none_of_it() -> None:
    busy = tallied((10.0, 11.5, 6.0), (11.5, 13.4, 7.0))
    assert busy.wanted_s == 2.0
    resting = tallied((10.9, 11.2, 6.0), (12.0, 12.3, 7.0))
    assert round(resting.wanted_s, 9) == 0.5


def test_a_probe_that_got_nothing_done_has_zeros() -> None:
    ran = tallied()
    assert (ran.completed, ran.used_s, ran.waited_s, ran.wanted_s, ran.span_s) == (0, 0.0, 0.0, 0.0, 0.0)
    assert ran.by_slice == (0, 0, 0, 0)
