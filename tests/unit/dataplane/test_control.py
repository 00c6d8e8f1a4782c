"""Everything that is no invocation goes to the control API, which may come and go."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from gateway_plugin.model import FunctionRoutes
from gateway_plugin.paths import Paths
from tests.unit.dataplane.stand import Gate, Stand, until
from tests.unit.dataplane.talk import post, read_answer

Play = Callable[..., None]


@pytest.mark.parametrize("target", ["/system/functions?a=b", "/gshare/up", "/healthz", "/", "//a//b", "/function"])
def test_other_paths_go_to_the_control_api_as_sent_and_without_call_id(play: Play, target: str) -> None:
    async def scenario(stand: Stand) -> None:
        control = await stand.control()
        await stand.publish(echo=FunctionRoutes())
        answer = await stand.ask(post(b'{"service": "f"}', path=target))
        (request,) = control.requests
        assert request.target == target
        assert answer.body == request.body == b'{"service": "f"}'
        assert not request.all("X-Call-Id") and not request.all("X-Start-Time")
        assert not answer.all("X-Call-Id") and not answer.all("X-Served-By")
        assert request.one("X-Forwarded-For").startswith("127.0.0.1:")
        assert request.one("Host") == request.one("X-Forwarded-Host") == "test"

    play(scenario)


def test_one_connection_is_kept_for_many_requests(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        control = await stand.control()
        for _ in range(5):
            await stand.ask(post(path="/system/info"))
        assert control.connections == 1

    play(scenario)


def test_requests_wait_while_the_control_api_restarts(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        control = await stand.control()
        assert (await stand.ask(post(b"1", path="/system/info"))).body == b"1"
        await control.stop()
        control.path.unlink()
        asked = [asyncio.ensure_future(stand.ask(post(b"2", path="/system/info"))) for _ in range(20)]
        await until(lambda: len(stand.worker.plane.clients) == 20)
        await stand.control()
        assert [answer.body for answer in await asyncio.gather(*asked)] == [b"2"] * 20

    play(scenario)


def test_a_control_api_that_stays_away_is_503_in_the_end(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        answer = await stand.ask(post(path="/system/info"))
        assert answer.status == 503
        assert b"the control API could not be reached within 0.1 s (GSHARE_QUEUE_TIMEOUT_S)" in answer.body

    play(scenario, queue_timeout_s=0.1)


def test_requests_in_a_listener_that_nobody_accepts_from_are_answered_by_the_successor(play: Play) -> None:
    """As when the supervisor keeps the control API's listener while that restarts."""

    async def scenario(stand: Stand) -> None:
        kept = socket.socket(socket.AF_UNIX)
        kept.bind(str(Paths(stand.settings.home).control_socket))
        kept.listen(16)
        asked = asyncio.ensure_future(stand.ask(post(b"x", path="/system/info")))
        await until(lambda: bool(stand.worker.plane.clients))
        assert not asked.done()
        await stand.control(listener=kept)
        assert (await asked).body == b"x"

    play(scenario)


def test_a_control_api_killed_with_a_request_in_its_hands_is_a_503(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        gate = Gate()
        control = await stand.control(gate)
        reader, writer = await stand.connect()
        writer.write(post(b"x", path="/system/info"))
        await until(lambda: gate.waiting == 1)
        await control.stop()
        answer = await read_answer(reader)
        assert answer.status == 503
        assert b"the control API closed the connection" in answer.body

    play(scenario)
