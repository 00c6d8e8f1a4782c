"""The node agent: its admin socket, its subscribers, its life."""

from __future__ import annotations

import asyncio
import logging
import signal

from gshare.wire import WireError, encode

from gateway_plugin.agent_protocol import (
    REQUEST,
    AdmitProbe,
    AskLedgers,
    ConfigureReplica,
    Devices,
    Done,
    Event,
    HoldProbe,
    Ledgers,
    ListDevices,
    ListReplicas,
    No,
    Replicas,
    Reply,
    Request,
    StartReplica,
    StopReplica,
    Subscribe,
)
from gateway_plugin.errors import AgentRefused
from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device, ReplicaStatus
from gateway_plugin.node.devices import discover, machine_cores, machine_memory_bytes
from gateway_plugin.node.gpu_processes import GpuProcessWatch
from gateway_plugin.node.guests import Guests, House
from gateway_plugin.node.nvml import Nvml, open_nvml
from gateway_plugin.node.runner import Runner
from gateway_plugin.node.schedulers import Scheduler, schedulers_of
from gateway_plugin.node.spaces import spaces_of
from gateway_plugin.node.streams import messages
from gateway_plugin.node.ungated_watch import UngatedWatch
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings

log = logging.getLogger(__name__)
SUBSCRIBER_BACKLOG_BYTES = 4 * 1024 * 1024


class Agent:
    """Answers the admin socket on behalf of the runner."""

    def __init__(self, settings: Settings, *, devices: tuple[Device, ...], nvml: Nvml | None = None) -> None:
        """`nvml`: where there are GPUs among the devices."""
        self._settings = settings
        self._paths = Paths(settings.home)
        self._devices = devices
        self._fence = 0
        self._subscribers: set[asyncio.StreamWriter] = set()
        self._spaces = spaces_of(devices, mps=settings.mps, paths=self._paths)
        self._schedulers = schedulers_of(devices, paths=self._paths, settings=settings)
        by_id = {device.id: device for device in devices}
        self._house = House(self._paths, by_id, self._schedulers, self._spaces)
        self._runner = Runner(
            paths=self._paths,
            devices=self._house.devices,
            spaces=self._spaces,
            schedulers=self._schedulers,
            weights_root=settings.weights_root,
            exec_timeout_s=settings.upstream_timeout_s,
            on_change=self._tell,
        )
        gpus = [device.id for device in devices if not device.cores]
        self._strangers = GpuProcessWatch(nvml, gpus, ours=self._ours) if nvml is not None else None
        self._ungated = UngatedWatch(statuses=self._runner.statuses, report=self._runner.judged)

    async def run(self, heartbeat: Heartbeat) -> None:
        """Until SIGTERM or SIGINT; then every replica is stopped first."""
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await self._runner.adopt(grace_s=self._settings.drain_timeout_s)
        await asyncio.gather(*(space.open() for space in self._spaces.values()))
        for scheduler in self._schedulers.values():  # knows its replicas by now, so that it forgets no living one
            scheduler.open()
        self._paths.agent_socket.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._serve, str(self._paths.agent_socket), backlog=64)
        self._paths.agent_socket.chmod(0o600)
        watches = [asyncio.ensure_future(space.watch(self._runner.clear)) for space in self._spaces.values()]
        watches.append(asyncio.ensure_future(self._ungated.run(self._devices, self._schedulers)))
        if self._strangers is not None:
            watches.append(asyncio.ensure_future(self._strangers.run()))
        beats = asyncio.ensure_future(heartbeat.keep_beating())
        await stop.wait()
        for watch in watches:
            watch.cancel()
        await self._runner.stop_all(grace_s=self._settings.drain_timeout_s)
        await asyncio.gather(*(space.close() for space in self._spaces.values()))
        await asyncio.gather(*(scheduler.close() for scheduler in self._schedulers.values()))
        beats.cancel()
        server.close()

    def _ours(self) -> frozenset[int]:
        """Processes that may use GPUs: replicas, which lead sessions, and MPS."""
        replicas = (status.pid for status in self._runner.statuses() if status.pid)
        return frozenset(replicas).union(*(space.pids() for space in self._spaces.values()))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guests = Guests(self._house)
        try:
            async for request in messages(reader, REQUEST):
                if isinstance(request, Subscribe):
                    self._subscribers.add(writer)
                    writer.write(encode(Done()))
                else:
                    writer.write(encode(await self._answer(request, guests)))
                await writer.drain()
        except (WireError, OSError) as error:
            log.warning("admin connection: %s", error)
        finally:
            self._subscribers.discard(writer)
            writer.close()
            await guests.leave()

    async def _answer(self, request: Request, guests: Guests) -> Reply:
        try:
            match request:
                case ListReplicas():
                    return Replicas(self._runner.statuses())
                case ListDevices():
                    return Devices(self._devices)
                case AskLedgers():
                    return Ledgers(tuple([await self._read_ledger(one) for one in self._schedulers.values()]))
                case AdmitProbe():
                    return await guests.admit(request)
                case HoldProbe(id=probe, pid=pid):
                    guests.hold(probe, pid)
                    return Done()
                case _:
                    await self._change(request)
                    return Done()
        except AgentRefused as error:
            return No(error.code, str(error))

    async def _read_ledger(self, scheduler: Scheduler) -> Ledger:
        return self._ungated.entered(await scheduler.read_ledger())

    async def _change(self, request: Request) -> None:
        match request:
            case StartReplica(fence=fence, spec=spec):
                self._check_fence(fence)
                await self._runner.start(spec)
            case StopReplica(fence=fence, id=replica_id, grace_s=grace_s):
                self._check_fence(fence)
                self._runner.stop(replica_id, grace_s=grace_s)
            case ConfigureReplica(fence=fence, id=replica_id, version=version, live=live):
                self._check_fence(fence)
                self._runner.configure(replica_id, live, version=version)

    def _check_fence(self, fence: int) -> None:
        """A loop that lost its lease without noticing must not change anything."""
        if fence < self._fence:
            raise AgentRefused(f"fencing number {fence} is older than {self._fence}: another loop has taken over")
        self._fence = fence

    def _tell(self, status: ReplicaStatus, gone: bool) -> None:
        frame = encode(Event(status, gone))
        for writer in list(self._subscribers):
            if writer.transport.get_write_buffer_size() > SUBSCRIBER_BACKLOG_BYTES:
                self._subscribers.discard(writer)
                writer.close()
            else:
                writer.write(frame)


def run_agent(settings: Settings, heartbeat: Heartbeat) -> None:
    """Blocks until told to stop. Raises: SettingsError for devices that are not here."""
    nvml = open_nvml()
    devices = discover(settings.devices, nvml=nvml, cores=machine_cores(), memory_bytes=machine_memory_bytes())
    log.info("devices: %s", ", ".join(f"{device.id} ({device.kind}, {device.units} units)" for device in devices))
    asyncio.run(Agent(settings, devices=devices, nvml=nvml).run(heartbeat))
