"""Framing and messages of the node's unix sockets."""

from __future__ import annotations

import socket
import threading

import msgspec
import pytest
from gshare import wire
from gshare.wire import Ack, Channel, Configure, FrameReader, FromReplica, Hello, LiveConfig, ToReplica, WireError
from hypothesis import given
from hypothesis import strategies as st


@given(st.lists(st.integers(0, 10**9), max_size=8), st.integers(1, 64))
def test_frames_survive_any_cut_of_the_stream(versions: list[int], step: int) -> None:
    stream = b"".join(wire.encode(Ack(version)) for version in versions)
    reader = FrameReader()
    bodies = [body for start in range(0, len(stream), step) for body in reader.feed(stream[start : start + step])]
    assert [msgspec.json.decode(body, type=Ack).version for body in bodies] == versions


def test_an_announced_length_over_the_limit_is_refused_before_it_is_read() -> None:
    with pytest.raises(WireError, match="announced"):
        list(FrameReader().feed(b"\xff\xff\xff\xff"))


def test_a_message_over_the_limit_is_not_sent() -> None:
    with pytest.raises(WireError, match="at most"):
        wire.encode(Hello(credential="x" * wire.MAX_FRAME_BYTES, replica="r", pid=1))


def test_both_sides_of_a_conversation_get_typed_messages() -> None:
    left, right = socket.socketpair()
    replica: Channel[ToReplica] = Channel(left, ToReplica)
    agent: Channel[FromReplica] = Channel(right, FromReplica)
    replica.send(Hello(credential="c", replica="r", pid=7))
    assert agent.receive() == Hello(credential="c", replica="r", pid=7)
    agent.send(Configure(2, LiveConfig(slo_ms=69.0)))
    assert replica.receive() == Configure(2, LiveConfig(slo_ms=69.0))
    replica.close()
    with pytest.raises(WireError, match="closed"):
        agent.receive()
    agent.close()


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"\x80\x04pickle", b'{"type":"grant"}', b'{"type":"ack","version":"x"}']
)
def test_what_is_no_message_of_the_protocol_is_refused(body: bytes) -> None:
    left, right = socket.socketpair()
    agent: Channel[FromReplica] = Channel(right, FromReplica)
    left.sendall(len(body).to_bytes(4, "big") + body)
    with pytest.raises(WireError, match="not a message"):
        agent.receive()
    left.close()
    agent.close()


def test_unknown_fields_are_skipped_so_that_newer_runtimes_can_say_more() -> None:
    left, right = socket.socketpair()
    agent: Channel[FromReplica] = Channel(right, FromReplica)
    body = b'{"type":"ack","version":3,"error":"","news":[1]}'
    left.sendall(len(body).to_bytes(4, "big") + body)
    assert agent.receive() == Ack(3)
    left.close()
    agent.close()


def test_many_threads_may_send_on_one_channel() -> None:
    left, right = socket.socketpair()
    replica: Channel[ToReplica] = Channel(left, ToReplica)
    agent: Channel[FromReplica] = Channel(right, FromReplica)
    threads = [threading.Thread(target=replica.send, args=(Ack(number),)) for number in range(50)]
    for thread in threads:
        thread.start()
    got = {message.version for message in (agent.receive() for _ in range(50)) if isinstance(message, Ack)}
    for thread in threads:
        thread.join()
    assert got == set(range(50))
    replica.close()
    agent.close()
