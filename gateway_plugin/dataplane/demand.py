"""What the loop hears from a worker: how many requests came each second, and which sleeping functions are wanted."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import redis

from gateway_plugin import store
from gateway_plugin.dataplane.registry import Registry

_LOG = logging.getLogger(__name__)
FLUSH_S = 0.25


class Demand:
    """Arrivals, kept in memory until Redis has taken them. A flush whose reply is lost may be counted twice."""

    def __init__(self, client: Any, *, worker: int) -> None:
        """`client`: a redis.asyncio.Redis (Any: redis-py's annotations mix its sync and async forms)."""
        self._redis = client
        self._worker = worker
        self._seconds: dict[tuple[str, int], int] = {}
        self._totals: dict[str, int] = {}

    def collect(self, registry: Registry, *, now_s: float) -> None:
        """Take over what arrived since the last time; drop removed functions, and seconds too old for anybody."""
        second = int(now_s)
        functions = registry.functions()
        for function in functions:
            count, function.arrived = function.arrived, 0
            if count:
                self._seconds[function.name, second] = self._seconds.get((function.name, second), 0) + count
                self._totals[function.name] = self._totals.get(function.name, 0) + count
        self._forget_removed({function.name for function in functions})
        if len(self._seconds) > store.DEMAND_TTL_S:
            oldest = second - store.DEMAND_TTL_S
            self._seconds = {key: count for key, count in self._seconds.items() if key[1] >= oldest}

    def _forget_removed(self, known: set[str]) -> None:
        """Writing the counts of a removed function would bring its keys back."""
        if not self._totals.keys() <= known:
            self._totals = {name: count for name, count in self._totals.items() if name in known}
            self._seconds = {key: count for key, count in self._seconds.items() if key[0] in known}

    async def flush(self) -> None:
        """Write everything collected, as one transaction. Raises: redis.RedisError; then it is kept for the next."""
        if not self._totals:
            return
        seconds, totals = dict(self._seconds), dict(self._totals)
        async with self._redis.pipeline(transaction=True) as pipe:
            for (name, second), count in seconds.items():
                pipe.hincrby(store.DEMAND + name, f"{second}:{self._worker}", count)
            for name, count in totals.items():
                pipe.expire(store.DEMAND + name, store.DEMAND_TTL_S)
                pipe.hincrby(store.INVOCATIONS, name, count)
            await pipe.execute()
        _subtract(self._seconds, seconds)
        _subtract(self._totals, totals)

    async def finish(self, registry: Registry) -> None:
        """The last flush. Raises: redis.RedisError."""
        self.collect(registry, now_s=time.time())
        await self.flush()

    async def run(self, registry: Registry) -> None:
        """Flush for ever; Redis' being away is said once."""
        away = False
        while True:
            await asyncio.sleep(FLUSH_S)
            self.collect(registry, now_s=time.time())
            try:
                await self.flush()
                away = False
            except (redis.RedisError, OSError) as error:
                if not away:
                    _LOG.warning("arrivals are kept in memory while Redis is away: %s", error)
                away = True


def _subtract(counts: dict[Any, int], written: dict[Any, int]) -> None:
    for key, count in written.items():
        rest = counts.get(key, 0) - count
        if rest > 0:
            counts[key] = rest
        else:
            counts.pop(key, None)


class Wakeups:
    """Wakes sleeping functions: one SET NX and one message for each, however many requests ask."""

    def __init__(self, client: Any) -> None:
        self._redis = client
        self._asked: dict[str, None] = {}
        self._new = asyncio.Event()

    def ask(self, name: str) -> None:
        """Wake `name`; nothing happens if it was asked for less than WAKEUP_TTL_S ago."""
        if name not in self._asked:
            self._asked[name] = None
            self._new.set()

    async def run(self, registry: Registry) -> None:
        """Send what was asked for, for ever; a wake-up that Redis did not take is sent again."""
        loop = asyncio.get_running_loop()
        sent: set[str] = set()
        while True:
            await self._new.wait()
            self._new.clear()
            for name in [name for name in self._asked if name not in sent]:
                try:
                    await self._send(name)
                except (redis.RedisError, OSError) as error:
                    _LOG.warning("wake-up of %s not taken by Redis, tried again: %s", name, error)
                    loop.call_later(FLUSH_S, self._new.set)
                    break
                sent.add(name)
                loop.call_later(store.WAKEUP_TTL_S, self._expire, name, sent, registry)

    async def _send(self, name: str) -> None:
        if await self._redis.set(store.WAKEUP + name, "1", nx=True, ex=store.WAKEUP_TTL_S):
            await self._redis.publish(store.CHANGED, name)

    def _expire(self, name: str, sent: set[str], registry: Registry) -> None:
        sent.discard(name)
        self._asked.pop(name, None)
        registry.wake_again(name)
