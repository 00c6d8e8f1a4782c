"""A replica's side of time sharing, against the real scheduler."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from gshare.temporal import TokenClient
from gshare.turn import FreeTurn, Gating

from tests.token_stand import (
    CREDENTIAL,
    PATIENCE_S,
    acquire,
    give_back,
    scheduler_process,
    token_client,
    token_stand,
)


def wait_until(condition: object, what: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < until_s, f"never: {what}"
        time.sleep(0.002)


def test_alone_a_token_is_kept_from_pass_to_pass_until_somebody_else_comes() -> None:
    with token_stand() as stand, token_client(stand.register("a")) as client:
        for _ in range(5):
            client.begin()
            client.end()
            client.idle()
        assert client.counts.tokens == 1
        assert stand.entry("a").holding

        stand.register("b")
        other = stand.link(str(stand.folder / "b.sock"))
        grant = acquire(other)  # comes only because the idle holder gives up its token

        assert not grant.alone
        assert not stand.entry("a").holding


def test_beside_others_an_idle_replica_holds_no_token() -> None:
    with token_stand() as stand, token_client(stand.register("a")) as client:
        stand.register("b")
        client.begin()
        client.end()
        client.idle()

        stand.wait_for_entry("a", holding=False)


def test_idle_holding_is_not_use() -> None:
    with token_stand() as stand, token_client(stand.register("a")) as client:
        client.begin()
        client.end()
        client.idle()
        other_path = stand.register("b")
        acquire(stand.link(other_path))

        entry = stand.wait_for_entry("a", holding=False)
        assert entry.used_s == pytest.approx(client.counts.used_s, abs=1e-6)


def test_a_pass_yields_at_a_gate_point_when_somebody_waits_and_goes_on_afterwards() -> None:
    with token_stand() as stand, token_client(stand.register("a"), request=0.1) as client:
        other = stand.link(stand.register("b", request=0.9))
        story: list[str] = []

        def neighbour() -> None:
            grant = acquire(other)
            story.append("b runs")
            give_back(other, grant, used_s=0.0)

        client.begin()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(neighbour)
            wait_until(lambda: stand.entry("b").waiting or waiting.done(), "b waits")
            while not waiting.done():
                time.sleep(0.005)
                client.point()
            story.append("a goes on")
            client.end()

        assert story == ["b runs", "a goes on"]
        assert client.counts.tokens >= 2


def test_two_replicas_of_one_core_never_compute_at_the_same_time() -> None:
    inside, most = 0, 0
    lock = threading.Lock()

    def work(client: TokenClient) -> None:
        nonlocal inside, most
        for _ in range(40):
            client.begin()
            with lock:
                inside += 1
                most = max(most, inside)
            time.sleep(0.002)
            with lock:
                inside -= 1
            client.end()
        client.idle()

    with (
        token_stand() as stand,
        token_client(stand.register("a")) as one,
        token_client(stand.register("b")) as two,
        ThreadPoolExecutor(2) as pool,
    ):
        list(pool.map(work, (one, two)))

    assert most == 1


def test_replicas_of_different_cores_compute_side_by_side() -> None:
    together = threading.Barrier(2)

    def work(client: TokenClient) -> None:
        client.begin()
        together.wait(PATIENCE_S)  # only passed when both are inside
        client.end()

    with (
        token_stand(units=2) as stand,
        token_client(stand.register("a", units=(0,))) as one,
        token_client(stand.register("b", units=(1,))) as two,
        ThreadPoolExecutor(2) as pool,
    ):
        list(pool.map(work, (one, two)))

    assert not together.broken


def test_without_a_scheduler_it_paces_itself_and_says_so() -> None:
    client = TokenClient(str(Path("/nowhere/time.sock")), CREDENTIAL, request=lambda: 0.5)
    client.start()
    try:
        assert not client.wait_settled(0.05)
        begun_s = time.monotonic()
        for _ in range(30):
            client.begin()
            time.sleep(0.01)
            client.end()
        took_s = time.monotonic() - begun_s

        assert client.gating is Gating.PACED
        assert "No such file" in client.reason
        assert client.counts.used_s <= 0.5 * took_s + 0.15, "half of the time, and the burst it may begin with"
    finally:
        client.stop()


def test_a_scheduler_that_dies_and_comes_back_is_used_again_by_the_same_client() -> None:
    with scheduler_process() as running:
        path = running.stand.register("a")
        with token_client(path) as client:
            client.begin()
            client.end()
            used_s = client.counts.used_s

            running.kill()
            client.point()
            wait_until(lambda: client.gating is Gating.PACED, "it noticed")
            client.begin()
            client.end()
            running.begin()
            wait_until(lambda: client.gating is Gating.TOKENS, "it is back")
            client.begin()
            client.end()

            assert running.stand.wait_for_entry("a", holding=True).used_s >= used_s


def test_a_client_that_waits_when_the_scheduler_dies_goes_on_at_its_own_pace() -> None:
    with scheduler_process() as running:
        path, other = running.stand.register("a"), running.stand.link(running.stand.register("b"))
        acquire(other, longest_block_s=100.0)
        with token_client(path) as client, ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.begin)
            running.stand.wait_for_entry("a", waiting=True)

            running.kill()

            waiting.result(PATIENCE_S)
            client.end()
            assert client.gating is Gating.PACED


def test_a_replica_that_is_told_it_lost_its_token_asks_before_it_goes_on() -> None:
    with token_stand(window_s=0.02) as stand, token_client(stand.register("a")) as client:
        other = stand.link(stand.register("b"))
        client.begin()
        client.end()
        client.idle()  # its blocks are known to be short from here on
        client.begin()  # and never comes to a gate point
        grant = acquire(other)

        assert stand.entry("a").lost == 1
        give_back(other, grant)
        client.point()
        client.end()
        assert client.counts.tokens == 3


def test_a_free_turn_counts_and_never_waits() -> None:
    turn = FreeTurn()
    turn.begin()
    time.sleep(0.01)
    turn.point()
    turn.end()
    turn.idle()

    assert not turn.over()
    assert turn.counts.used_s >= 0.01
    assert turn.counts.longest_block_s >= 0.009  # the longer block, a little forgotten


def test_what_a_replica_uses_alone_is_in_the_ledger_soon_though_nobody_recalls_its_token() -> None:
    with token_stand() as stand, token_client(stand.register("a")) as client:
        client.begin()
        client.end()
        client.idle()

        entry = stand.wait_for_entry("a", holding=False)

        assert entry.used_s == pytest.approx(client.counts.used_s, abs=1e-6)
        assert client.counts.used_s > 0
