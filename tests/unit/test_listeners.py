"""Listening sockets outlive the processes that accept on them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import msgspec
import pytest
from gshare.wire import FrameReader

from gateway_plugin.listeners import keep_offering, listen_tcp, listen_unix, port_is_free
from gateway_plugin.supervisor.protocol import Offer


def _accept_offer(server: socket.socket) -> tuple[socket.socket, Offer, socket.socket]:
    connection, _ = server.accept()
    data, descriptors, _, _ = socket.recv_fds(connection, 4096, 1)
    (body,) = FrameReader().feed(data)
    return connection, msgspec.json.decode(body, type=Offer), socket.socket(fileno=descriptors[0])


def test_a_listener_is_offered_again_to_each_new_supervisor(tmp_path: Path) -> None:
    path = tmp_path / "supervisor.sock"
    listener = listen_unix(tmp_path / "mine.sock")
    first = listen_unix(path)
    keep_offering(path, "dataplane-0", listener)
    connection, offer, copy = _accept_offer(first)
    assert offer.name == "dataplane-0"
    assert os.fstat(copy.fileno()).st_ino == os.fstat(listener.fileno()).st_ino
    connection.close()
    copy.close()
    first.close()
    second = listen_unix(path)
    connection, offer, copy = _accept_offer(second)
    assert offer.name == "dataplane-0"
    for one in (copy, second, listener):
        one.close()
    path.unlink()
    connection.close()


def test_connects_to_a_kept_listener_wait_for_the_next_acceptor(tmp_path: Path) -> None:
    listener = listen_unix(tmp_path / "a.sock")
    dying = listener.dup()
    dying.close()
    client = socket.socket(socket.AF_UNIX)
    client.connect(str(tmp_path / "a.sock"))
    client.sendall(b"early")
    accepted, _ = listener.accept()
    assert accepted.recv(10) == b"early"
    for one in (accepted, client, listener):
        one.close()


def test_workers_share_a_port_and_a_stranger_finds_it_taken() -> None:
    first = listen_tcp("127.0.0.1", 0)
    port = first.getsockname()[1]
    second = listen_tcp("127.0.0.1", port)
    assert not port_is_free("127.0.0.1", port)
    first.close()
    second.close()
    assert port_is_free("127.0.0.1", port)


def test_a_port_that_somebody_holds_alone_cannot_be_shared() -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        with pytest.raises(OSError, match="in use"):
            listen_tcp("127.0.0.1", stranger.getsockname()[1])
