"""One replica from start to end: loads its function in the device thread, then answers until it is drained."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from werkzeug.datastructures import Headers

import gshare
from gshare.calls import Calls, Place
from gshare.condition import Condition, Phase
from gshare.config import MODEL_WEIGHTS, ReplicaConfig, check_live
from gshare.context import Context, read_secret
from gshare.deadline import Deadline, call_deadline
from gshare.device import Device, open_device, plain_device, settle
from gshare.entry import Handle, find_function, import_entry
from gshare.errors import GshareError, NotReady, WeightsError
from gshare.gates import OutermostGate, SharedTurn
from gshare.handler import Handler
from gshare.metrics import Metrics
from gshare.node import Managed, NodeClient
from gshare.service import ModelService, PlainService, Service
from gshare.temporal import TokenClient
from gshare.turn import FreeTurn, Gating, Turn
from gshare.weights import Weights, open_weights
from gshare.wire import Hello, LiveConfig, State

log = logging.getLogger(__name__)

HUB_TOKEN_SECRET = "hf-token"
FIRST_RETRY_S = 1.0
LAST_RETRY_S = 30.0
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Admitted:
    """One call of the function that there is room for."""

    service: Service
    place: Place

    @property
    def deadline(self) -> Deadline:
        return self.place.deadline

    def run(self, work: Callable[[], Value]) -> Value:
        """What `work` returns, in a thread of the function. Raises: DeadlineExceeded, or whatever `work` raises."""
        return self.place.run(work)


class Runtime:
    """Wires function, device, batcher, node and metrics of one process together."""

    def __init__(self, config: ReplicaConfig, env: Mapping[str, str], *, template: Path) -> None:
        self.config = config
        self.metrics = Metrics(config.function)
        self.condition = Condition()
        self.device: Device | None = None
        self.live = config.live()
        self.live_version = 0
        """Version of the settings in force; 0: those of the start."""
        self._env = env
        self._template = template
        self._service: Service | None = None
        self._changing = threading.RLock()
        self._final = False
        self.settled = threading.Event()
        """Set once loading is over, ready or failed."""
        self.ending = threading.Event()
        """Set when this process is to end; setting it is all that a signal handler has to do."""
        self.calls = Calls(
            limit=config.max_inflight,
            queue=config.max_queued,
            longest_s=config.exec_timeout_s or math.inf,
            on_stuck=self.give_up,
        )
        self._node = self._node_client() if config.node_socket else None
        self._tokens = self._token_client() if config.token_socket else None
        self.turn: Turn = self._tokens or FreeTurn()
        self.gate = OutermostGate(SharedTurn(self.turn, self._synchronize)) if self._tokens else None
        """What a plain function's modules have to pass; unused by handler classes."""
        self.metrics.watch("ready", lambda: float(self.condition.phase is Phase.READY))
        self.metrics.watch("managed", lambda: float(self.managed is Managed.YES))
        self.metrics.watch("token_server_up", lambda: float(self.turn.gating is Gating.TOKENS))
        self.metrics.watch("memory_bytes", lambda: float(self.condition.memory_bytes))

    @property
    def managed(self) -> Managed:
        return self._node.managed if self._node else Managed.NO

    @property
    def managed_reason(self) -> str:
        return self._node.reason if self._node else "GSHARE_NODE_SOCKET is not set"

    def start(self) -> None:
        """Begin to load; returns at once. Must run in the process that serves, not in its parent."""
        if self._node:
            self._node.start()
        else:
            log.info("unmanaged: GSHARE_NODE_SOCKET is not set, so shares and live settings are nobody's")
        if self._tokens:
            self._tokens.start()
        threading.Thread(target=self._run, name="gshare-device", daemon=True).start()

    @property
    def service(self) -> Service | None:
        """The function, once it is loaded."""
        return self._service

    def loaded(self) -> Service:
        """The function. Raises: NotReady."""
        service = self._service
        if service is None:
            raise NotReady(f"{self.condition.phase}: {self.condition.reason}")
        return service

    @contextmanager
    def admitted(self, headers: Headers) -> Iterator[Admitted]:
        """Room for one call of the loaded function, under its in-flight limit and its deadline.

        Raises:
            NotReady: it is not loaded. Overloaded: there is no room. BadInput: an X-Timeout that is none.
        """
        deadline = call_deadline(headers, self.config.exec_timeout_s)
        service = self.loaded()
        with self.calls.place(deadline) as place:
            yield Admitted(service, place)

    def configure(self, live: LiveConfig, version: int) -> None:
        """Put live settings in force. Raises: ConfigError, and the old ones stay."""
        check_live(live)
        with self._changing:
            self.live, self.live_version = live, version
            if self._service is not None:
                self._service.configure(live)

    def drain(self) -> None:
        """Say that the end is near; requests that still come are answered."""
        self._end(Phase.DRAINING, "stopping: it got SIGTERM")

    def give_up(self, reason: str) -> None:
        """This process cannot go on and ends after answering what it still can; its node replaces it."""
        if self._end(Phase.FAILED, f"its process is replaced: {reason}"):
            log.error("this process ends: %s", reason)
        self.ending.set()

    def close(self) -> None:
        """Let the device thread end once its work is done, and leave the node."""
        self.ending.set()
        self.calls.close()
        if self._service is not None:
            self._service.close()
        if self._node:
            self._node.stop()

    def state(self) -> State:
        """The condition as the agent is told it."""
        known = self.condition
        return State(
            state=known.phase,
            reason=known.reason,
            weights=known.weights,
            weights_digest=known.weights_digest,
            memory_bytes=known.memory_bytes,
            warmup_ms=known.warmup_ms,
        )

    def _node_client(self) -> NodeClient:
        hello = Hello(
            credential=self.config.credential,
            replica=self.config.replica,
            pid=os.getpid(),
            runtime=gshare.__version__,
        )
        return NodeClient(self.config.node_socket, hello, state=self.state, configure=self.configure)

    def _token_client(self) -> TokenClient:
        return TokenClient(
            self.config.token_socket,
            self.config.credential,
            request=lambda: self.live.quota_request,
            synchronize=self._synchronize,
        )

    def _synchronize(self) -> None:
        if self.device is not None:
            self.device.synchronize()

    def _run(self) -> None:
        """The device thread."""
        service = self._loaded()
        if service is None:
            return
        if self._node and not self._node.wait_settled(self.config.node_wait_s):
            log.warning("no node agent within %g s; serving without it", self.config.node_wait_s)
        with self._changing:
            service.configure(self.live)
            self._service = service
        self._become(phase=Phase.READY, reason="")
        self.settled.set()
        service.serve()
        if self._tokens:
            self._tokens.stop()

    def _loaded(self) -> Service | None:
        """The function, tried again where nobody else does and it may help; None if it stays failed."""
        retry_s = FIRST_RETRY_S
        while True:
            try:
                return self._load()
            except Exception as error:  # edge of the thread: a replica that cannot load says why, and lives
                self._cannot_load(error)
                # A node agent starts a new process instead, and knows when.
                if self._node or not _may_mend(error) or self.ending.wait(retry_s):
                    return None
            self._become(phase=Phase.LOADING, reason="trying again")
            retry_s = min(2 * retry_s, LAST_RETRY_S)

    def _cannot_load(self, error: Exception) -> None:
        reason = str(error) if isinstance(error, GshareError) else f"{type(error).__name__}: {error}"
        log.error("not ready: %s", reason, exc_info=error)
        self._become(phase=Phase.FAILED, reason=reason)
        self.settled.set()

    def _load(self) -> Service:
        started_s = time.monotonic()
        folder = find_function(self._env, self._template)
        self._become(reason="importing the function")
        entry = import_entry(folder)
        if not (isinstance(entry, type) and issubclass(entry, Handler)):
            self.device = plain_device(self.config)
            return self._plain_service(entry, folder)
        service = self._load_model(entry, folder)
        log.info("loaded in %.1f s", time.monotonic() - started_s)
        return service

    def _plain_service(self, handle: Handle, folder: Path) -> PlainService:
        if self.gate is not None:
            self.gate.install()
        return PlainService(handle, folder, gate=self.gate)

    def _load_model(self, kind: type[Handler[object, object]], folder: Path) -> ModelService:
        self.device = open_device(self.config)
        self._become(reason="finding the weights")
        weights = self._open_weights()
        self._become(reason="loading the model")
        context = Context(self.device, weights, self._env, Path(self.config.secrets_dir))
        service = ModelService.load(
            kind,
            context,
            folder=folder,
            turn=self.turn,
            on_batch=self.metrics.batch,
            on_lost=lambda fault: self.give_up(str(fault)),
        )
        if self._tokens and not self._tokens.wait_settled(self.config.node_wait_s):
            log.warning("no token scheduler within %g s; pacing itself", self.config.node_wait_s)
        if self.config.token_socket:
            settle(self.config.cpus)
        self._become(reason="warming up", weights=weights.text if weights.used else "", weights_digest=weights.digest())
        warmup_ms = service.warm_up()
        self._become(warmup_ms=warmup_ms, memory_bytes=self.device.memory_bytes())
        return service

    def _open_weights(self) -> Weights:
        token = read_secret(Path(self.config.secrets_dir), HUB_TOKEN_SECRET)
        return open_weights(self._env.get(MODEL_WEIGHTS, ""), self.config, hub_token=token)

    def _end(self, phase: Phase, reason: str) -> bool:
        """The last phase of this process; whether nobody had said one before, which then stays."""
        with self._changing:
            if self._final:
                return False
            self._become(phase=phase, reason=reason)
            self._final = True
            return True

    def _become(self, **changes: object) -> None:
        """Change the condition and tell the agent; one that ends stays that."""
        with self._changing:
            if self._final:
                changes.pop("phase", None)
                changes.pop("reason", None)
            self.condition = replace(self.condition, **changes)  # type: ignore[arg-type]
        if "phase" in changes:
            log.info("%s%s", self.condition.phase, f": {self.condition.reason}" if self.condition.reason else "")
        if self._node:
            self._node.tell_state()


def _may_mend(error: Exception) -> bool:
    """Whether it may go away from outside: files that are missing, broken or without room, not faults of the code."""
    return any(isinstance(one, (WeightsError, OSError)) for one in (error, error.__cause__))
