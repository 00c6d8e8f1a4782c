"""One supervised process: started, watched, restarted, adopted, stopped."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from gateway_plugin.paths import Paths
from gateway_plugin.supervisor.child import Child, ChildSpec

SLEEPER = (sys.executable, "-c", "import time; time.sleep(600)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
)


def make(spec: ChildSpec, home: Path) -> Child:
    paths = Paths(home)
    paths.create()
    return Child(spec, paths=paths, env=os.environ, backoff_max_s=0.2)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


def test_a_killed_process_is_started_again_and_its_end_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        child = make(ChildSpec(name="x", argv=SLEEPER), tmp_path)
        child.begin()
        first = child.status().pid
        os.kill(first, signal.SIGKILL)
        await until(lambda: child.status().pid not in (0, first))
        status = child.status()
        assert (status.state, status.restarts, status.last_exit) == ("running", 1, "killed by signal 9")
        await child.stop()
        assert child.status().state == "stopped"

    asyncio.run(story())


def test_one_that_keeps_dying_is_started_with_growing_pauses_for_ever(tmp_path: Path) -> None:
    async def story() -> None:
        child = make(ChildSpec(name="x", argv=(sys.executable, "-c", "raise SystemExit(4)")), tmp_path)
        child.begin()
        await until(lambda: child.status().restarts >= 3)
        assert child.status().last_exit == "exited with code 4"
        await child.stop()

    asyncio.run(story())


def test_a_program_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    async def story() -> None:
        child = make(ChildSpec(name="x", argv=(str(tmp_path / "later"),)), tmp_path)
        child.begin()
        assert "cannot be started" in child.status().last_exit
        (tmp_path / "later").symlink_to("/bin/cat")
        await until(lambda: child.status().restarts >= 1)
        await child.stop()

    asyncio.run(story())


def test_the_next_supervisor_adopts_the_running_process(tmp_path: Path) -> None:
    async def story() -> None:
        first = make(ChildSpec(name="x", argv=SLEEPER), tmp_path)
        first.begin()
        second = make(ChildSpec(name="x", argv=SLEEPER), tmp_path)
        second.begin()
        assert second.status().pid == first.status().pid
        assert second.status().adopted
        popen = first.popen
        assert popen is not None
        await second.stop()
        assert popen.wait() == -signal.SIGTERM
        await first.stop()

    asyncio.run(story())


def test_a_stale_record_is_not_adopted(tmp_path: Path) -> None:
    async def story() -> None:
        child = make(ChildSpec(name="x", argv=SLEEPER), tmp_path)
        record = Paths(tmp_path).processes / "x.json"
        process = f'{{"pid":{os.getpid()},"start_ticks":1,"boot_id":""}}'
        record.write_text(f'{{"process":{process},"argv":[],"started_at":0}}')
        child.begin()
        assert child.status().pid not in (0, os.getpid())
        assert not child.status().adopted
        await child.stop()
        assert not record.exists()

    asyncio.run(story())


def test_one_that_ignores_sigterm_is_killed_after_its_time(tmp_path: Path) -> None:
    async def story() -> None:
        child = make(ChildSpec(name="x", argv=STUBBORN, stop_timeout_s=0.2), tmp_path)
        child.begin()
        log = Paths(tmp_path).logs / "x.log"
        await until(lambda: "deaf" in log.read_text())
        await child.stop()
        assert child.status().last_exit == "killed by signal 9"

    asyncio.run(story())


def test_a_silent_process_is_killed_and_started_again(tmp_path: Path) -> None:
    async def story() -> None:
        child = make(ChildSpec(name="x", argv=SLEEPER, heartbeat_limit_s=0.0), tmp_path)
        child.begin()
        first = child.status().pid
        child.heartbeat.beat()
        child.check_heartbeat()
        await until(lambda: child.status().pid not in (0, first))
        await child.stop()

    asyncio.run(story())


def test_one_whose_probe_fails_several_times_in_a_row_is_killed(tmp_path: Path) -> None:
    async def story() -> None:
        answers = [False, False, True, False, False, False, False]
        child = make(ChildSpec(name="x", argv=SLEEPER, probe=lambda: answers.pop(0)), tmp_path)
        child.begin()
        first = child.status().pid
        for _ in range(6):
            await child.check_probe()
            assert child.status().pid == first
        await child.check_probe()
        await until(lambda: child.status().pid not in (0, first))
        await child.stop()

    asyncio.run(story())
