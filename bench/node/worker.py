"""A process of the benchmark: runs models in its turn exactly as a replica does, whenever it is told to.

`python -m bench.node.worker DESCRIPTOR MODELS`: talks over that socket, loads those models (commas between), and is
told cores, token socket, credential and quotas by the environment of a replica.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from typing import Any

from gshare.config import ReplicaConfig
from gshare.device import Device, open_device
from gshare.errors import GshareError
from gshare.handler import Handler
from gshare.passes import Passes
from gshare.temporal import TokenClient
from gshare.turn import FreeTurn, Turn
from gshare.wire import Channel, WireError

from bench.node import models
from bench.node.jobs import Failed, Loaded, Ran, Run, ToWorker, Weigh
from bench.node.weighing import CountedTurn, weigh

CONNECT_S = 10.0


class Worker:
    """The models of this process and its turn on the device."""

    def __init__(self, config: ReplicaConfig, names: list[str]) -> None:
        """Raises: GshareError: a model cannot be loaded. WireError: no scheduler answers."""
        self._config = config
        self._device: Device = open_device(config)
        self._turn = CountedTurn(_turn_of(config))
        self._passes: dict[str, Passes] = {}
        self._items: dict[str, Any] = {}
        for name in names:
            handler = self._load(name)
            self._passes[name], self._items[name] = Passes(handler, self._device, self._turn), handler.example()
            self._passes[name].warm_up()

    def take(self, job: ToWorker, channel: Channel[ToWorker]) -> None:
        """Do it and answer."""
        match job:
            case Run():
                channel.send(self._run(job))
            case Weigh():
                model = job.model
                channel.send(
                    weigh(job, self._passes[model], twin=self._load(model), item=self._items[model], turn=self._turn)
                )

    def _load(self, name: str) -> Handler[Any, Any]:
        return models.load(name, self._config, self._device)

    def _run(self, job: Run) -> Ran:
        run, item = self._passes[job.model], self._items[job.model]
        asked: list[float] = []
        ended: list[float] = []
        time.sleep(max(0.0, job.start_s - time.monotonic()))
        while (now_s := time.monotonic()) < job.start_s + job.run_s:
            asked.append(now_s)
            run([item])
            ended.append(time.monotonic())
        self._turn.idle()
        return Ran(tuple(asked), tuple(ended))


def main() -> None:
    """Until the benchmark hangs up."""
    logging.basicConfig(level=logging.ERROR)
    channel: Channel[ToWorker] = Channel(socket.socket(fileno=int(sys.argv[1])), ToWorker)
    try:
        worker = Worker(ReplicaConfig.from_env(os.environ), sys.argv[2].split(","))
    except (GshareError, WireError) as error:
        channel.send(Failed(str(error)))
        return
    channel.send(Loaded())
    while True:
        try:
            job = channel.receive()
        except WireError:  # the benchmark has ended
            return
        worker.take(job, channel)


def _turn_of(config: ReplicaConfig) -> Turn:
    if not config.token_socket:
        return FreeTurn()
    client = TokenClient(config.token_socket, config.credential, request=lambda: config.quota_request)
    client.start()
    if not client.wait_settled(CONNECT_S):
        raise WireError(f"no token scheduler within {CONNECT_S:g} s: {client.reason}")
    return client


if __name__ == "__main__":
    main()
