"""A worker as a process of its own: its end, its successor, its neighbours."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable

import uvloop

from gateway_plugin.counters import Counters
from gateway_plugin.model import FunctionRoutes
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store
from tests.unit.dataplane.stand import Gate, Stand, standing, until
from tests.unit.dataplane.talk import Message, post, read_answer

Play = Callable[..., None]
PROGRAM = """
import os, socket, sys
from pathlib import Path
from gateway_plugin.dataplane.worker import run
from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.settings import Settings
settings = Settings.from_env(os.environ)
listener = socket.socket(fileno=int(sys.argv[1]))
run(settings, number=0, listener=listener, heartbeat=Heartbeat(settings.home / "beat"))
"""


def _spawn(settings: Settings, listener: socket.socket) -> subprocess.Popen[bytes]:
    descriptor = listener.fileno()
    env = {**os.environ, **settings.to_env()}
    return subprocess.Popen([sys.executable, "-c", PROGRAM, str(descriptor)], env=env, pass_fds=[descriptor])


async def _ended(process: subprocess.Popen[bytes]) -> int:
    return await asyncio.get_running_loop().run_in_executor(None, process.wait)


async def _ask(port: int, body: bytes) -> Message:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(post(body))
    answer = await read_answer(reader)
    writer.transport.abort()
    return answer


def test_sigterm_finishes_what_runs_and_a_successor_gets_the_connects_that_wait(play: Play) -> None:
    """The stand gives Redis and replicas; its own worker serves nobody here."""

    async def scenario(stand: Stand) -> None:
        gate = Gate()
        await stand.serve(gate)
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        first = _spawn(stand.settings, listener)
        running = asyncio.ensure_future(_ask(port, b"running"))
        await until(lambda: gate.waiting == 1)
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        first.send_signal(signal.SIGTERM)
        assert await idle_reader.read() == b"", "an idle connection is closed"
        idle_writer.transport.abort()
        waiting = asyncio.ensure_future(_ask(port, b"waiting"))
        assert not running.done()
        gate.opened.set()
        answer = await running
        assert answer.body == b"running"
        assert answer.one("Connection") == "close"
        assert await _ended(first) == 0
        second = _spawn(stand.settings, listener)
        assert (await waiting).body == b"waiting"
        second.send_signal(signal.SIGTERM)
        assert await _ended(second) == 0
        listener.close()

    play(scenario)


def test_a_drain_that_takes_too_long_refuses_who_waits_and_cuts_the_rest(play: Play) -> None:
    async def scenario(stand: Stand) -> None:
        await stand.publish(echo=FunctionRoutes())
        asked = asyncio.ensure_future(stand.ask(post(b"x")))
        await until(lambda: stand.waiting() == 1)
        await stand.worker.drain()
        answer = await asked
        assert answer.status == 503
        assert b"this worker stops" in answer.body

    play(scenario, drain_timeout_s=0.1)


def test_the_in_flight_numbers_that_a_killed_worker_left_are_cleared_by_its_successor(settings: Settings) -> None:
    counters = Counters(Paths(settings.home).counters, workers=1)
    left = counters.worker(0)
    left.add(3, 5)
    left.set_applied_version(9)

    async def main() -> None:
        async with standing(settings, redis=None):
            assert counters.in_flight(3) == 0
            assert counters.applied_version() == 0

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    left.release()
    counters.close()


def test_two_workers_keep_to_a_replica_s_limit_together_and_see_each_other_s_room(settings: Settings) -> None:
    async def main() -> None:
        both = dataclasses.replace(settings, workers=2)
        async with contextlib.AsyncExitStack() as stack:
            first = await stack.enter_async_context(standing(both, redis=None))
            second = await stack.enter_async_context(standing(both, redis=None, number=1))
            gate = Gate()
            await first.serve(gate, most=1)
            await until(lambda: second.worker.plane.registry.version is not None)
            mine = asyncio.ensure_future(first.ask(post(b"mine")))
            await until(lambda: gate.waiting == 1)
            yours = asyncio.ensure_future(second.ask(post(b"yours")))
            await until(lambda: second.waiting() == 1)
            gate.opened.set()
            assert [(await mine).body, (await yours).body] == [b"mine", b"yours"]
            assert gate.most == 1
            assert Store(settings.redis_url).routes() is not None

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
