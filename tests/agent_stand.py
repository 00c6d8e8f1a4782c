"""The agent's end of a replica's node socket, for tests: real messages over a real socket, recorded in order."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from gshare.wire import Ack, Channel, Configure, FromReplica, Hello, LiveConfig, Refused, State, Welcome, WireError

MessageT = TypeVar("MessageT", Hello, State, Ack)
LIMIT_S = 60.0


class AgentStand:
    """Listens for replicas, welcomes (or refuses) them, and remembers what they say."""

    def __init__(self, path: Path, *, live: LiveConfig | None = None, refuse: str = "") -> None:
        self.path = path
        self.live = live or LiveConfig()
        self.version = 1
        self.refuse = refuse
        self.messages: list[FromReplica] = []
        self.connections = 0
        self._open: list[tuple[Channel[FromReplica], socket.socket]] = []
        self._changed = threading.Condition()
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(str(path))
        self._server.listen()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def wait_for(self, kind: type[MessageT], accepts: Callable[[MessageT], bool] = lambda _: True) -> MessageT:
        """The first message of that kind which `accepts` takes, waiting for it if need be."""

        def found() -> MessageT | None:
            return next((m for m in self.messages if isinstance(m, kind) and accepts(m)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None, LIMIT_S)
            message = found()
        assert message is not None, f"no such {kind.__name__} among {self.messages}"
        return message

    def wait_disconnected(self) -> None:
        """Until no replica is connected."""
        with self._changed:
            assert self._changed.wait_for(lambda: not self._open, LIMIT_S)

    def configure(self, live: LiveConfig) -> int:
        """Send new settings to everyone connected; their version."""
        self.version, self.live = self.version + 1, live
        for channel, _ in self._open:
            channel.send(Configure(self.version, live))
        return self.version

    def close(self) -> None:
        """Go away, as an agent that dies does."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for _, connection in tuple(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(LIMIT_S)
        self.path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._talk, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _talk(self, connection: socket.socket) -> None:
        channel: Channel[FromReplica] = Channel(connection, FromReplica)
        entry = (channel, connection)
        with self._changed:
            self.connections += 1
            self._open.append(entry)
        try:
            while True:
                self._take(channel, channel.receive())
        except WireError:
            pass
        finally:
            channel.close()
            with self._changed:
                self._open.remove(entry)
                self._changed.notify_all()

    def _take(self, channel: Channel[FromReplica], message: FromReplica) -> None:
        if isinstance(message, Hello):
            channel.send(Refused(self.refuse) if self.refuse else Welcome(self.version, self.live))
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()


@contextmanager
def agent_stand(*, live: LiveConfig | None = None, refuse: str = "") -> Iterator[AgentStand]:
    """An agent that listens, for the length of the block."""
    folder = Path(tempfile.mkdtemp(prefix="gshare-agent-"))
    stand = AgentStand(folder / "node.sock", live=live, refuse=refuse)
    try:
        yield stand
    finally:
        stand.close()
        shutil.rmtree(folder)
