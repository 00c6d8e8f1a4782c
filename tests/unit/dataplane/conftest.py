"""`play`: runs a scenario against a worker of its own."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import uvloop

from gateway_plugin.dataplane.plane import HEAD_TIMEOUT_S
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from tests.unit.dataplane.stand import Stand, standing

Play = Callable[..., None]
SCENARIO_LIMIT_S = 15.0
"""Only ends a scenario that hangs."""


@pytest.fixture
def settings(redis_url: str) -> Iterator[Settings]:
    """Settings of a home of its own, one worker, an empty Redis."""
    with tempfile.TemporaryDirectory(prefix="gs") as folder:
        Paths(Path(folder)).create()
        yield Settings(home=Path(folder), redis_url=redis_url, workers=1, drain_timeout_s=5.0)


@pytest.fixture
def play(settings: Settings) -> Iterator[Play]:
    """Run `scenario(stand)`; keyword arguments change settings."""
    client = redis.Redis.from_url(settings.redis_url)

    def run(
        scenario: Callable[[Stand], Awaitable[None]], *, head_timeout_s: float = HEAD_TIMEOUT_S, **changes: Any
    ) -> None:
        async def main() -> None:
            changed = dataclasses.replace(settings, **changes)
            async with asyncio.timeout(SCENARIO_LIMIT_S):
                async with standing(changed, redis=client, head_timeout_s=head_timeout_s) as stand:
                    await scenario(stand)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    yield run
    client.close()
