"""Routing tables from Redis into memory. While Redis is away the last one stays in force."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import redis

from gateway_plugin import store
from gateway_plugin.dataplane.registry import Registry
from gateway_plugin.errors import StoreFormat
from gateway_plugin.model import RouteTable

_LOG = logging.getLogger(__name__)
RETRY_FIRST_S = 0.05
RETRY_MOST_S = 2.0
SILENCE_S = 5.0
"""Without a message for this time the value is read, which also shows whether the connection still lives."""


class Feed:
    """Follows `gshare:routes`: the channel for news, the value after each connect and each silence."""

    def __init__(self, client: Any, registry: Registry) -> None:
        """`client`: a redis.asyncio.Redis that does not retry by itself."""
        self._redis = client
        self._registry = registry
        self._value = b""
        """The value last read, to tell a change from a repetition."""
        self._failures = 0

    async def run(self) -> None:
        """Follow for ever; reconnect with growing pauses."""
        while True:
            try:
                await self._follow()
            except (redis.RedisError, OSError) as error:
                if self._failures == 0:
                    _LOG.warning("Redis is away, serving on with routing table %s: %s", self._registry.version, error)
                pause_s = min(RETRY_MOST_S, RETRY_FIRST_S * 2 ** min(self._failures, 10))
                self._failures += 1
                await asyncio.sleep(pause_s)

    async def _follow(self) -> None:
        async with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(store.ROUTES)
            while True:
                # The value first: what is published after the subscription comes as a message besides.
                self.take_value(await self._redis.get(store.ROUTES))
                self._failures = 0
                while (message := await channel.get_message(timeout=SILENCE_S)) is not None:
                    self.take_message(message["data"])

    def take_message(self, data: bytes) -> None:
        """News: in force unless it is older than what is."""
        table = _decode(data)
        current = self._registry.version
        if table is not None and (current is None or table.version > current):
            self._value = data
            self._registry.apply(table)

    def take_value(self, data: bytes | None) -> None:
        """What Redis holds now is the truth, even with a lower version: a Redis that was killed may have lost some."""
        if data is None or data == self._value:
            return
        table = _decode(data)
        if table is not None:
            self._value = data
            self._registry.apply(table)


def _decode(data: bytes) -> RouteTable | None:
    try:
        return store.decode(data, RouteTable, key=store.ROUTES)
    except StoreFormat as error:
        _LOG.error("routing table not taken, the last one stays in force: %s", error)
        return None
