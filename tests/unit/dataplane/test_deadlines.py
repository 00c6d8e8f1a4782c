"""One timer watches many equal limits."""

from __future__ import annotations

import asyncio

import uvloop

from gateway_plugin.dataplane.deadlines import Deadlines


def test_items_fall_due_in_order_and_discarded_ones_do_not() -> None:
    async def scenario() -> list[str]:
        due: list[str] = []
        done = asyncio.Event()

        def expired(item: str) -> None:
            due.append(item)
            if item == "last":
                done.set()

        deadlines: Deadlines[str] = Deadlines(asyncio.get_running_loop(), 0.02, expired)
        for item in ("first", "discarded", "second", "last"):
            deadlines.add(item)
        deadlines.discard("discarded")
        deadlines.discard("never there")
        await done.wait()
        assert len(deadlines) == 0
        return due

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(scenario()) == ["first", "second", "last"]


def test_adding_an_item_again_starts_its_time_anew() -> None:
    async def scenario() -> list[str]:
        due: list[str] = []
        done = asyncio.Event()

        def expired(item: str) -> None:
            due.append(item)
            if len(due) == 2:
                done.set()

        deadlines: Deadlines[str] = Deadlines(asyncio.get_running_loop(), 0.02, expired)
        deadlines.add("renewed")
        deadlines.add("other")
        deadlines.add("renewed")
        await done.wait()
        return due

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(scenario()) == ["other", "renewed"]
