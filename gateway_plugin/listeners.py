"""Listening sockets that outlive the processes which accept on them.

The supervisor opens and keeps them, so that a connect to a dead process waits for its successor. Should the supervisor
itself die, each child offers its listener to the next one, descriptor and all, over `supervisor.sock`.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from pathlib import Path

from gshare.wire import encode

from gateway_plugin.supervisor.protocol import Offer

RETRY_S = 0.1


def listen_tcp(host: str, port: int, *, backlog: int = 4096) -> socket.socket:
    """A listener that shares its port with others of ours (SO_REUSEPORT). Raises: OSError if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    return _listen(listener, (host, port), backlog)


def listen_unix(path: Path, *, backlog: int = 1024) -> socket.socket:
    """A listener on a fresh unix socket, 0600; an old file of that name is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    _listen(listener, str(path), backlog)
    path.chmod(0o600)
    return listener


def _listen(listener: socket.socket, address: tuple[str, int] | str, backlog: int) -> socket.socket:
    try:
        listener.bind(address)
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    return listener


def port_is_free(host: str, port: int) -> bool:
    """Whether nobody listens on that TCP port, sharing it or not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def keep_offering(supervisor_socket: Path, name: str, listener: socket.socket) -> None:
    """From a daemon thread: offer `listener` to whoever supervises, now and after each change of supervisor."""

    def offer_for_ever() -> None:
        while True:
            with contextlib.suppress(OSError):
                _offer_until_gone(supervisor_socket, name, listener)
            time.sleep(RETRY_S)

    threading.Thread(target=offer_for_ever, name=f"offer-{name}", daemon=True).start()


def _offer_until_gone(supervisor_socket: Path, name: str, listener: socket.socket) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(str(supervisor_socket))
        socket.send_fds(connection, [encode(Offer(name))], [listener.fileno()])
        connection.recv(1)  # returns when this supervisor is gone


def inherited_listener(descriptor: int) -> socket.socket:
    """The listening socket that the supervisor passed under this number."""
    os.set_inheritable(descriptor, False)
    return socket.socket(fileno=descriptor)
