"""The control API as a destination: one more upstream, on a socket whose listener outlives the process behind it."""

from __future__ import annotations

import asyncio

from gateway_plugin.dataplane import refusals
from gateway_plugin.dataplane.exchange import Exchange
from gateway_plugin.dataplane.pool import Endpoint

RETRY_FIRST_S = 0.05
RETRY_MOST_S = 1.0


class Control:
    """Takes every request that is no invocation. Connects again until the queue timeout: nothing was sent yet."""

    hop = "the control API"

    def __init__(self, endpoint: Endpoint, *, loop: asyncio.AbstractEventLoop, limit: int, timeout_s: float) -> None:
        self._endpoint = endpoint
        self._loop = loop
        self._limit = limit
        self._timeout_s = timeout_s
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, exchange: Exchange) -> None:
        upstream = self._endpoint.take_idle()
        if upstream is not None:
            exchange.bind(upstream)
        elif len(self._tasks) >= self._limit:
            exchange.refuse(refusals.queue_full(self.hop, self._limit))
        else:
            task = self._loop.create_task(self._connect(exchange))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def overdue(self, exchange: Exchange) -> None:
        """Nothing to do: `_connect` keeps the time."""

    def withdraw(self, exchange: Exchange) -> None:
        """Nothing to do: `_connect` looks whether its exchange is over."""

    async def _connect(self, exchange: Exchange) -> None:
        give_up_at = self._loop.time() + self._timeout_s
        pause_s = RETRY_FIRST_S
        while not exchange.over:
            try:
                upstream = await self._endpoint.connect()
            except OSError as error:
                if self._loop.time() + pause_s > give_up_at:
                    exchange.refuse(refusals.unreachable(self.hop, limit_s=self._timeout_s, error=error))
                    return
                await asyncio.sleep(pause_s)
                pause_s = min(RETRY_MOST_S, 2 * pause_s)
                continue
            if exchange.over:
                self._endpoint.keep(upstream)
            else:
                exchange.bind(upstream)
            return
