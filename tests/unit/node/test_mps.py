"""The owner of an MPS daemon: a contract for the real program and its stand-in, and what only the latter can show."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gateway_plugin.errors import MpsUnavailable
from gateway_plugin.model import Device
from gateway_plugin.node.devices import discover
from gateway_plugin.node.mps import PID_FILE, PROGRAM, MpsClient, MpsDaemon, MpsLimits
from gateway_plugin.node.nvml import open_nvml
from gateway_plugin.processes import ProcessId, children_of, identify
from tests.mps_stand import CUDA_CLIENT, FAKE_CLIENT, PATIENT, client_of, commands_of, fake_daemon

GPU = Device(id="GPU-5e1f", kind="V100", units=40, memory_bytes=16 * 1024**3)


@pytest.fixture
def fake() -> Iterator[MpsDaemon]:
    with fake_daemon(GPU) as daemon:
        yield daemon


@pytest.fixture(params=["fake", "real"])
def any_daemon(request: pytest.FixtureRequest, fake: MpsDaemon) -> tuple[MpsDaemon, str]:
    """A daemon that is not started, and the program of a client."""
    if request.param == "fake":
        return fake, FAKE_CLIENT
    nvml = open_nvml()
    if nvml is None or shutil.which(PROGRAM) is None:
        pytest.skip("no NVIDIA GPU, or no nvidia-cuda-mps-control")
    device = discover("", nvml=nvml, cores=(), memory_bytes=0)[0]
    return MpsDaemon(device, pipes=fake.pipes, logs=fake.logs, limits=PATIENT), CUDA_CLIENT


def process_of(daemon: MpsDaemon) -> ProcessId:
    process = identify(int((daemon.pipes / PID_FILE).read_text()))
    assert process is not None
    return process


def test_it_starts_answers_serves_clients_ends_one_and_stops(any_daemon: tuple[MpsDaemon, str]) -> None:
    daemon, script = any_daemon

    async def life() -> None:
        await daemon.start(replace=True)
        assert await daemon.servers() == ()
        assert await daemon.clients() == ()
        assert float(await daemon.command("get_default_active_thread_percentage")) == 100
        with client_of(daemon, script=script) as client:
            (server,) = await daemon.servers()
            assert await daemon.clients() == (MpsClient(server, client.pid),)
            assert await daemon.faulted_servers() == ()
            family = [process_of(daemon), *children_of(process_of(daemon).pid)]
            assert server in {one.pid for one in family}
            await daemon.terminate(MpsClient(server, client.pid))
            assert client.poll() is None, "only its work on the device is ended"
        await daemon.stop()
        assert [one for one in family if one.alive()] == []
        with pytest.raises(MpsUnavailable, match="control daemon"):
            await daemon.check()

    asyncio.run(life())


def test_the_next_agent_takes_over_a_daemon_that_answers(any_daemon: tuple[MpsDaemon, str]) -> None:
    daemon, _ = any_daemon

    async def life() -> None:
        await daemon.start(replace=True)
        first = process_of(daemon)
        await daemon.start(replace=True)
        assert process_of(daemon) == first
        await daemon.stop()

    asyncio.run(life())


def test_it_is_not_restarted_while_a_client_is_left(any_daemon: tuple[MpsDaemon, str]) -> None:
    daemon, script = any_daemon

    async def life() -> None:
        await daemon.start(replace=True)
        first = process_of(daemon)
        with client_of(daemon, script=script) as client:
            with pytest.raises(MpsUnavailable, match=rf"clients are left \({client.pid}\).*stop them first"):
                await daemon.restart()
            assert process_of(daemon) == first
        while await daemon.clients():
            pass
        await daemon.restart()
        assert process_of(daemon) != first
        await daemon.stop()

    asyncio.run(life())


def test_its_own_environment_names_the_device_by_uuid_and_no_default_of_the_agents(
    fake: MpsDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "10")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")

    async def life() -> None:
        await fake.start(replace=True)
        env = Path(f"/proc/{process_of(fake).pid}/environ").read_bytes().split(b"\0")
        assert b"CUDA_VISIBLE_DEVICES=GPU-5e1f" in env
        assert b"CUDA_DEVICE_ORDER=PCI_BUS_ID" in env
        assert float(await fake.command("get_default_active_thread_percentage")) == 100
        await fake.stop()

    asyncio.run(life())


@pytest.mark.parametrize(
    ("misbehaviour", "short", "what"),
    [
        ("hang", "launch_s", "-d did not return within 0.2 s"),
        ("exit1", "answer_s", "-d ended with code 1: Failed to start: the GPU is in use by another user"),
        ("late", "command_s", "no answer to 'get_server_list' within 0.2 s"),
        ("refuse", "answer_s", "'get_server_list' ended with code 1: Permission denied"),
    ],
)
def test_a_daemon_that_does_not_start_is_named_with_directory_and_remedy_and_leaves_nothing(
    misbehaviour: str, short: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MPS", misbehaviour)
    limits = replace(PATIENT, **{"answer_s": 0.2, short: 0.2})
    with fake_daemon(GPU, limits=limits) as daemon:
        with pytest.raises(MpsUnavailable) as caught:
            asyncio.run(daemon.start(replace=True))
        left = left_of(daemon)

    text = str(caught.value)
    assert text.startswith(f"MPS for GPU-5e1f (pipe directory {daemon.pipes}): ")
    assert what in text
    assert text.endswith(f"; see {daemon.logs}/control.log, then restart the agent; GSHARE_MPS=off does without")
    assert left == []


def test_an_absent_program_is_named_with_what_installs_it(tmp_path: Path) -> None:
    daemon = MpsDaemon(GPU, pipes=tmp_path / "pipes", logs=tmp_path / "logs", program="nvidia-cuda-mps-nowhere")
    with pytest.raises(MpsUnavailable, match=r"nowhere cannot be run: No such file.*; install the driver's compute"):
        asyncio.run(daemon.start(replace=True))


def test_by_default_every_way_to_fail_is_told_within_ten_seconds() -> None:
    assert MpsLimits().longest_start_s <= 10


def test_a_daemon_that_does_not_answer_is_replaced_only_when_no_client_can_be_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def life(daemon: MpsDaemon) -> None:
        await daemon.start(replace=True)
        first = process_of(daemon)
        monkeypatch.setenv("FAKE_MPS", "refuse")
        with pytest.raises(MpsUnavailable):
            await daemon.start(replace=False)
        assert first.alive()
        monkeypatch.delenv("FAKE_MPS")
        os.kill(first.pid, signal.SIGSTOP)
        await MpsDaemon(
            GPU, pipes=daemon.pipes, logs=daemon.logs, program=str(program), limits=replace(PATIENT, command_s=0.5)
        ).start(replace=True)
        assert not first.alive()
        await daemon.check()
        await daemon.stop()

    with fake_daemon(GPU) as daemon:
        program = daemon.pipes.parent / PROGRAM
        asyncio.run(life(daemon))


def test_a_number_in_a_stale_file_is_never_killed(fake: MpsDaemon) -> None:
    async def life() -> None:
        await fake.start(replace=True)
        await fake.stop()
        (fake.pipes / PID_FILE).write_text(f"{os.getpid()}\n")
        await fake.start(replace=True)
        assert process_of(fake).pid != os.getpid()
        await fake.stop()

    asyncio.run(life())


def test_a_directory_of_another_user_is_refused_since_a_daemon_serves_one(tmp_path: Path) -> None:
    (tmp_path / "pipes").mkdir()
    mine = os.getuid()
    daemon = MpsDaemon(GPU, pipes=tmp_path / "pipes", logs=tmp_path / "logs", uid=mine + 1)
    with pytest.raises(MpsUnavailable, match=f"belongs to user {mine}, but clients run as user {mine + 1}"):
        asyncio.run(daemon.start(replace=True))


def test_a_daemon_that_was_killed_is_told_at_the_next_question(fake: MpsDaemon) -> None:
    async def life() -> None:
        await fake.start(replace=True)
        os.kill(process_of(fake).pid, 9)
        with pytest.raises(MpsUnavailable, match="Cannot find MPS control daemon process"):
            await fake.check()

    asyncio.run(life())


def test_a_server_in_fault_is_seen_and_the_log_names_the_client(fake: MpsDaemon) -> None:
    async def life() -> None:
        await fake.start(replace=True)
        with client_of(fake) as client:
            (server,) = await fake.servers()
            await fake.command(f"fault {client.pid}")
            assert await fake.faulted_servers() == (server,)
            assert f"PID: {client.pid}" in fake.log_tail()
        await fake.stop()

    asyncio.run(life())


def test_every_command_passes_through_one_place_in_its_own_words(fake: MpsDaemon) -> None:
    async def life() -> None:
        await fake.start(replace=True)
        with client_of(fake) as client:
            (server,) = await fake.servers()
            await fake.terminate(MpsClient(server, client.pid))
            assert commands_of(fake)[-2:] == ["get_server_list", f"terminate_client {server} {client.pid}"]
        await fake.stop()
        assert "quit -t 30" in commands_of(fake)

    asyncio.run(life())


def test_a_question_that_is_given_up_leaves_no_process_behind(fake: MpsDaemon, monkeypatch: pytest.MonkeyPatch) -> None:
    async def life() -> None:
        fake.pipes.mkdir()
        fake.logs.mkdir()
        monkeypatch.setenv("FAKE_MPS", "late")
        question = asyncio.ensure_future(fake.check())
        while not left_of(fake):
            await asyncio.sleep(0)
        question.cancel()
        await asyncio.wait([question])
        assert question.cancelled()
        assert left_of(fake) == []

    asyncio.run(life())


def left_of(daemon: MpsDaemon) -> list[str]:
    """Processes that were started for this daemon."""
    mark = os.fsencode(f"CUDA_MPS_PIPE_DIRECTORY={daemon.pipes}")
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text())
        except OSError:
            continue
    return found
