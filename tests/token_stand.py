"""A token scheduler for tests: the real one, in a thread or as a process, with its admin socket at hand."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from gshare.temporal import TokenClient
from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Grant, Return
from gshare.wire import Channel, connect

from gateway_plugin.heartbeat import Heartbeat
from gateway_plugin.node.tokens.protocol import Answer, AskLedger, Entry, Ledger, Register, SetUp, Yes
from gateway_plugin.node.tokens.server import TokenServer

PATIENCE_S = 60.0
CREDENTIAL = "secret"
PROGRAM = (
    "import sys, pathlib; from gateway_plugin.node.tokens.server import run_token_server; "
    "from gateway_plugin.heartbeat import Heartbeat; "
    "run_token_server(pathlib.Path(sys.argv[1]), Heartbeat(pathlib.Path(sys.argv[1] + '.beat')))"
)


class TokenStand:
    """What the agent would tell a scheduler, said by a test."""

    def __init__(self, folder: Path, *, units: int = 1, window_s: float = 0.2, exclusive: bool = True) -> None:
        self.folder = folder
        self.admin_socket = folder / "admin.sock"
        self.set_up = SetUp("cpu:0", units, exclusive=exclusive, window_s=window_s)
        self._registered: list[Register] = []
        self._admin: Channel[Answer] | None = None
        self._links: list[TokenLink | socket.socket] = []

    def introduce(self) -> None:
        """Connect to the scheduler, new or restarted, and tell it everything."""
        if self._admin is not None:
            self._admin.close()
        until_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._admin = connect(str(self.admin_socket), Answer, timeout_s=PATIENCE_S)
                break
            except OSError:
                assert time.monotonic() < until_s, "no scheduler came up"
                time.sleep(0.01)
        for request in (self.set_up, *self._registered):
            assert self.ask(request) == Yes()

    def ask(self, request: msgspec.Struct) -> Answer:
        assert self._admin is not None
        self._admin.send(request)
        return self._admin.receive()

    def register(self, replica: str, *, request: float = 0.5, limit: float = 1.0, units: tuple[int, ...] = (0,)) -> str:
        """The socket on which that replica may ask."""
        path = str(self.folder / f"{replica}.sock")
        asked = Register(replica, f"{replica}.ns", CREDENTIAL, path, units, request, limit)
        self._registered.append(asked)
        assert self.ask(asked) == Yes()
        return path

    def ledger(self) -> Ledger:
        answer = self.ask(AskLedger())
        assert isinstance(answer, Ledger)
        return answer

    def entry(self, replica: str) -> Entry:
        return next(entry for entry in self.ledger().entries if entry.replica == replica)

    def wait_for_entry(self, replica: str, **expected: object) -> Entry:
        """Its entry, once these fields have these values."""
        until_s = time.monotonic() + PATIENCE_S
        while any(getattr(self.entry(replica), name) != value for name, value in expected.items()):
            assert time.monotonic() < until_s, f"{replica}: {self.entry(replica)} is not {expected}"
            time.sleep(0.005)
        return self.entry(replica)

    def link(self, path: str, *, credential: str = CREDENTIAL, used_s: float = 0.0) -> TokenLink:
        """A bare connection to a replica's socket, welcomed."""
        link, _ = TokenLink.open(path, credential, used_s=used_s, timeout_s=PATIENCE_S)
        self._links.append(link)
        return link

    def raw(self, path: str) -> socket.socket:
        """A connection that has said nothing yet."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._links.append(sock)
        sock.settimeout(PATIENCE_S)
        sock.connect(path)
        return sock

    def close(self) -> None:
        for link in self._links:
            link.close()
        if self._admin is not None:
            self._admin.close()


@contextmanager
def token_stand(*, units: int = 1, window_s: float = 0.2) -> Iterator[TokenStand]:
    """A scheduler in a thread of this process."""
    with _folder() as folder:
        stand = TokenStand(folder, units=units, window_s=window_s)
        server = TokenServer(stand.admin_socket)
        thread = threading.Thread(target=server.run, args=(Heartbeat(folder / "beat"),))
        thread.start()
        try:
            stand.introduce()
            yield stand
        finally:
            stand.close()
            server.stop()
            thread.join(PATIENCE_S)


class SchedulerProcess:
    """A scheduler that can be killed and started again."""

    def __init__(self, stand: TokenStand) -> None:
        self.stand = stand
        self.begin()

    def begin(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(self.stand.admin_socket)])
        self.stand.introduce()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE_S)


@contextmanager
def scheduler_process(*, units: int = 1, window_s: float = 0.2) -> Iterator[SchedulerProcess]:
    with _folder() as folder:
        running = SchedulerProcess(TokenStand(folder, units=units, window_s=window_s))
        try:
            yield running
        finally:
            running.stand.close()
            running.kill()


@contextmanager
def token_client(path: str, *, request: float = 0.5) -> Iterator[TokenClient]:
    """A replica's client, connected."""
    client = TokenClient(path, CREDENTIAL, request=lambda: request)
    client.start()
    try:
        assert client.wait_settled(PATIENCE_S)
        yield client
    finally:
        client.stop()


def acquire(link: TokenLink, *, longest_block_s: float = 0.01) -> Grant:
    link.send(Acquire(longest_block_s))
    return link.wait_for_grant()


def give_back(link: TokenLink, grant: Grant, *, used_s: float = 0.0) -> None:
    link.send(Return(grant.token, used_s))


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="gs"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder
