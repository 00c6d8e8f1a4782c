"""One data-plane process: puts the parts together, serves until SIGTERM, then finishes what runs."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from typing import Any

import redis.asyncio
import uvloop
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from gateway_plugin.counters import Counters
from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.client import ClientConnection
from gateway_plugin.dataplane.control import Control
from gateway_plugin.dataplane.deadlines import Deadlines
from gateway_plugin.dataplane.demand import Demand, Wakeups
from gateway_plugin.dataplane.exchange import Exchange
from gateway_plugin.dataplane.feed import Feed
from gateway_plugin.dataplane.functions import Shared
from gateway_plugin.dataplane.plane import HEAD_TIMEOUT_S, Plane
from gateway_plugin.dataplane.pool import UNIX_PREFIX, Endpoint, IdleConnections
from gateway_plugin.dataplane.registry import Registry
from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings

_LOG = logging.getLogger(__name__)
BACKLOG = 2048
CANCEL_AGAIN_S = 0.1
LAST_WORDS_S = 1.0
"""At the end of a drain: the time for a refusal to reach its client."""
POLL_S = 0.01
"""With more than one worker, how often a queue looks for room that another worker's requests left."""


def run(settings: Settings, *, number: int, listener: socket.socket, heartbeat: Heartbeat) -> None:
    """Serve on `listener`, a listening TCP socket, as worker `number`; returns after SIGTERM and the drain.

    `heartbeat` shows each second that the event loop is not stuck.

    Whoever passed the listener keeps a duplicate: connects made after the end wait there for a successor.

    Raises:
        SystemExit: 1, after the drain, when a background job failed.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if not runner.run(_main(settings, number=number, listener=listener, heartbeat=heartbeat)):
            raise SystemExit(1)


async def _main(settings: Settings, *, number: int, listener: socket.socket, heartbeat: Heartbeat) -> bool:
    worker = Worker(settings, number=number)
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, worker.stop.set)
    await worker.start(listener)
    beats = loop.create_task(heartbeat.keep_beating())
    gc.collect()
    gc.freeze()  # what lives as long as the process need not be looked at again
    await worker.stop.wait()
    await worker.drain()
    beats.cancel()
    return worker.sound


class Worker:
    """All parts of one worker, in the running event loop."""

    def __init__(self, settings: Settings, *, number: int, head_timeout_s: float = HEAD_TIMEOUT_S) -> None:
        loop = asyncio.get_running_loop()
        self._settings = settings
        self._loop = loop
        self._client = _redis_client(settings)
        self._wakeups = Wakeups(self._client)
        self.counters = Counters(Paths(settings.home).counters, workers=settings.worker_count())
        row = self.counters.worker(number)
        row.clear()
        idle = IdleConnections(loop)
        shared = Shared(
            loop=loop,
            counters=self.counters,
            row=row,
            idle=idle,
            queue_limit=settings.queue_limit,
            queue_timeout_s=settings.queue_timeout_s,
            wake=self._wakeups.ask,
            waiting=Deadlines(loop, settings.queue_timeout_s, Exchange.queue_overdue),
        )
        self._shared = shared
        self._registry = Registry(shared)
        api = Endpoint(f"{UNIX_PREFIX}{Paths(settings.home).control_socket}", loop=loop, idle=idle)
        control = Control(api, loop=loop, limit=settings.queue_limit, timeout_s=settings.queue_timeout_s)
        self.plane = Plane(settings, loop=loop, registry=self._registry, control=control, head_timeout_s=head_timeout_s)
        self._demand = Demand(self._client, worker=number)
        self._tasks: list[asyncio.Task[None]] = []
        self._server: asyncio.Server | None = None
        self.stop = asyncio.Event()
        """Set: drain and end."""
        self.sound = True
        """No background job has failed."""

    async def start(self, listener: socket.socket) -> None:
        """Accept and serve; requests wait until the first routing table is in."""
        background = [
            Feed(self._client, self._registry).run(),
            self._demand.run(self._registry),
            self._wakeups.run(self._registry),
        ]
        if self._settings.worker_count() > 1:
            background.append(self._poll())
        self._tasks = [self._loop.create_task(job) for job in background]
        for task in self._tasks:
            task.add_done_callback(self._job_ended)
        self._server = await self._loop.create_server(
            lambda: ClientConnection(self.plane), sock=listener, backlog=BACKLOG
        )

    async def drain(self) -> None:
        """Accept nothing more, finish what runs within the drain timeout, then cut the rest."""
        plane = self.plane
        plane.draining = True
        if self._server is not None:
            self._server.close()
        for client in list(plane.clients):
            client.drain()
        if not await self._all_gone(self._settings.drain_timeout_s):
            _LOG.warning("%d connections cut after GSHARE_DRAIN_TIMEOUT_S", len(plane.clients))
            for client in list(plane.clients):
                client.refuse_waiting(refusals.stopping())
            if not await self._all_gone(LAST_WORDS_S):
                for client in list(plane.clients):
                    client.cut()
                await plane.all_gone()
        await self._stop_background()
        _LOG.info("worker stopped: %s", dict(sorted(plane.outcomes.items())))

    async def _all_gone(self, limit_s: float) -> bool:
        try:
            async with asyncio.timeout(limit_s):
                await self.plane.all_gone()
        except TimeoutError:
            return False
        return True

    async def _stop_background(self) -> None:
        running = set(self._tasks)
        for task in running:
            task.remove_done_callback(self._job_ended)
        while running:
            for task in running:
                task.cancel()
            # Again and again: a cancellation that meets a reply of Redis just come in can be swallowed on the way.
            _, running = await asyncio.wait(running, timeout=CANCEL_AGAIN_S)
        await self._flush_last()
        await self._client.aclose()

    async def _flush_last(self) -> None:
        try:
            await self._demand.finish(self._registry)
        except (redis.RedisError, OSError) as error:
            _LOG.warning("the last arrivals were not written: %s", error)

    def _job_ended(self, task: asyncio.Task[None]) -> None:
        """A background job never ends by itself: it met a defect. Drain, and let the supervisor start afresh."""
        _LOG.critical("background job ended", exc_info=None if task.cancelled() else task.exception())
        self.sound = False
        self.stop.set()

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            self._registry.dispatch()


def _redis_client(settings: Settings) -> Any:
    url = settings.redis_url or f"unix://{Paths(settings.home).redis_socket}"
    # No retries inside: after each loss of connection the feed has to read the value again.
    once = Retry(NoBackoff(), 0)
    return redis.asyncio.Redis.from_url(url, retry=once, socket_timeout=5.0, socket_connect_timeout=5.0)
