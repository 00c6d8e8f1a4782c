"""Requests wait for a replica with room: bounded, in order, woken by what makes room (user cases A7, A28)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway_plugin.model import FunctionRoutes
from gateway_plugin.store import CHANGED, ROUTES, WAKEUP
from tests.unit.dataplane.stand import Gate, Stand, until
from tests.unit.dataplane.talk import Message, post, read_answer

Play = Callable[..., None]


def test_a_replica_never_has_more_requests_than_it_takes_and_none_is_lost(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        gates = [Gate(), Gate()]
        await stand.serve(*gates, most=3)
        asked = [asyncio.ensure_future(stand.ask(post(b"%d" % n))) for n in range(50)]
        await until(lambda: stand.waiting() == 44)
        assert [gate.waiting for gate in gates] == [3, 3]
        for gate in gates:
            gate.opened.set()
        answers = await asyncio.gather(*asked)
        assert [answer.body for answer in answers] == [b"%d" % n for n in range(50)]
        assert [gate.most for gate in gates] == [3, 3]

    play(scenario)


def test_who_waits_longest_is_served_first(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        for number in range(5):
            _, writer = await stand.connect()
            writer.write(post(b"%d" % number))
            await until(lambda expected=number + 1: stand.waiting() == expected)  # type: ignore[misc]
        (replica,) = await stand.serve(most=1)
        await until(lambda: len(replica.requests) == 5)
        assert [request.body for request in replica.requests] == [b"0", b"1", b"2", b"3", b"4"]

    play(scenario)


def test_the_queue_is_bounded_and_the_excess_gets_429(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        asked = [asyncio.ensure_future(stand.ask(post(b"x"))) for _ in range(5)]
        await until(lambda: stand.waiting() == 5)
        refused = await stand.ask(post(b"x"))
        assert refused.status == 429
        assert refused.one("Retry-After") == "1"
        assert b"5 requests wait already in this worker (GSHARE_QUEUE_LIMIT)" in refused.body
        await stand.serve()
        assert [answer.status for answer in await asyncio.gather(*asked)] == [200] * 5

    play(scenario, queue_limit=5)


def test_waiting_ends_after_the_queue_timeout_with_503(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        answer = await stand.ask(post(b"x"))
        assert answer.status == 503
        assert answer.one("Retry-After")
        assert b"no replica became ready within 0.1 s (GSHARE_QUEUE_TIMEOUT_S)" in answer.body
        assert stand.waiting() == 0

    play(scenario, queue_timeout_s=0.1)


def test_a_replica_out_of_reach_for_the_whole_queue_timeout_is_503(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes(replicas=(stand.route(stand.run / "none.sock"),)))
        answer = await stand.ask(post(b"x"))
        assert answer.status == 503
        assert b"all 1 ready replicas stayed full or out of reach" in answer.body

    play(scenario, queue_timeout_s=0.2)


def test_the_body_of_a_waiting_request_is_not_read(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        reader, writer = await stand.connect()
        body = bytes(20_000_000)
        writer.write(post(body))
        await until(lambda: stand.waiting() == 1)
        assert writer.transport.get_write_buffer_size() > 10_000_000
        await stand.serve()
        assert (await read_answer(reader)).body == body

    play(scenario)


def test_a_removed_function_answers_404_to_who_waits_for_it(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        asked = asyncio.ensure_future(stand.ask(post(b"x")))
        await until(lambda: stand.waiting() == 1)
        await stand.publish(other=FunctionRoutes())
        assert (await asked).status == 404

    play(scenario)


def test_a_replica_taken_out_of_the_table_finishes_what_it_has(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        gate = Gate()
        old = await stand.replica(gate)
        new = await stand.replica()
        await stand.publish(echo=FunctionRoutes(replicas=(stand.route(old.path, slot=1),)))
        asked = asyncio.ensure_future(stand.ask(post(b"old")))
        await until(lambda: gate.waiting == 1)
        await stand.publish(echo=FunctionRoutes(replicas=(stand.route(new.path, slot=2),)))
        assert (await stand.ask(post(b"new"))).body == b"new"
        assert stand.in_flight(1) == 1
        gate.opened.set()
        assert (await asked).body == b"old"
        assert stand.in_flight(1) == 0
        await until(lambda: old.open == 0)

    play(scenario)


def test_200_requests_at_zero_replicas_wake_the_function_once(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes(wanted=0))
        with stand.redis.pubsub(ignore_subscribe_messages=True) as channel:
            channel.subscribe(CHANGED)
            channel.get_message(timeout=1.0)
            asked = [asyncio.ensure_future(stand.ask(post(b"%d" % n))) for n in range(200)]
            await until(lambda: stand.waiting() == 200)
            await until(lambda: bool(stand.redis.exists(f"{WAKEUP}echo.openfaas-fn")))
            await stand.publish(echo=FunctionRoutes(wanted=1))
            await stand.serve()
            answers: list[Message] = await asyncio.gather(*asked)
            assert [answer.status for answer in answers] == [200] * 200
            messages = []
            while (message := channel.get_message(timeout=0.05)) is not None:
                messages.append(message["data"])
            assert messages == [b"echo.openfaas-fn"]

    play(scenario)


def test_a_function_put_to_sleep_with_requests_waiting_is_woken(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes(wanted=1))
        asked = asyncio.ensure_future(stand.ask(post(b"x")))
        await until(lambda: stand.waiting() == 1)
        await stand.publish(echo=FunctionRoutes(wanted=0))
        await until(lambda: bool(stand.redis.exists(f"{WAKEUP}echo.openfaas-fn")))
        await stand.serve()
        assert (await asked).status == 200

    play(scenario)


def test_before_the_first_table_functions_wait_and_health_is_503(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.control()
        known = asyncio.ensure_future(stand.ask(post(b"x")))
        unknown = asyncio.ensure_future(stand.ask(post(b"x", path="/function/nope")))
        health = b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n"
        assert (await stand.ask(health)).status == 503
        assert not known.done()
        await stand.serve()
        assert (await known).status == 200
        assert (await unknown).status == 404
        assert (await stand.ask(health)).status == 200

    play(scenario)


def test_without_any_table_waiting_ends_with_503(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        answer = await stand.ask(post(b"x"))
        assert answer.status == 503
        assert b"no routing table" in answer.body
        assert not stand.redis.exists(ROUTES)

    play(scenario, queue_timeout_s=0.1)
