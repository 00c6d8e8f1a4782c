"""The scheduler's sockets: who may ask, what happens to those that misbehave, what the ledger says."""

from __future__ import annotations

import socket
import stat
import struct
import time
from pathlib import Path

import msgspec
import pytest
from gshare.token_wire import Acquire, Lost, Recall, Return, TokenHello
from gshare.wire import WireError, encode

from gateway_plugin.node.tokens.protocol import AskLedger, Refusal, Register, Resize, SetUp, Unregister, Yes
from tests.token_stand import CREDENTIAL, acquire, give_back, token_stand

TIMEOUT_S = 30.0


def is_hung_up(sock: socket.socket) -> bool:
    try:
        while sock.recv(4096):
            pass
    except ConnectionError:
        pass
    return True


def test_the_credential_decides_not_the_name_that_is_sent() -> None:
    with token_stand() as stand:
        path = stand.register("a")

        with pytest.raises(WireError, match="wrong credential"):
            stand.link(path, credential="guessed")
        assert not stand.entry("a").connected


def test_each_socket_is_for_one_user_and_one_replica() -> None:
    with token_stand() as stand:
        path = stand.register("a")
        stand.link(path)

        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
        with pytest.raises(WireError, match="one token a replica"):
            stand.link(path)


def test_an_image_of_another_protocol_is_told_to_be_rebuilt() -> None:
    with token_stand() as stand:
        sock = stand.raw(stand.register("a"))
        sock.sendall(encode(TokenHello(CREDENTIAL, protocol=99)))

        assert b"rebuild the image" in sock.recv(4096)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack(">I", 2**31) + b"x",
        struct.pack(">I", 5000) + b"x" * 5000,
        struct.pack(">I", 4) + b"\xff\xfe\x00\x01",
        encode(Acquire(0.01)),
        struct.pack(">I", 2) + b"{}",
        encode(TokenHello(CREDENTIAL)) + encode(TokenHello(CREDENTIAL)),
        encode(TokenHello(CREDENTIAL)) + encode(Acquire(0.01)) + encode(Acquire(0.01)),
        encode(TokenHello(CREDENTIAL)) + encode(Acquire(-1.0)),
    ],
)
def test_garbage_ends_its_own_connection_and_nobody_elses(garbage: bytes) -> None:
    with token_stand() as stand:
        good, bad = stand.link(stand.register("good")), stand.raw(stand.register("bad"))

        bad.sendall(garbage)

        assert is_hung_up(bad)
        assert acquire(good).token > 0
        again = stand.link(str(stand.folder / "bad.sock"))
        assert again.fileno() >= 0


def test_a_replica_cannot_return_the_token_of_another_nor_change_a_quota() -> None:
    with token_stand() as stand:
        a, b = stand.link(stand.register("a", request=0.2, limit=0.4)), stand.link(stand.register("b"))
        grant = acquire(b, longest_block_s=100.0)

        give_back(a, grant)  # b's token, by its number
        a.send(Acquire(0.01))
        assert a.receive(0.3) is None, "b still holds the core"
        a.send(Resize("a", 1.0, 1.0))

        with pytest.raises(WireError):
            a.receive(TIMEOUT_S)
        entry = stand.entry("a")
        assert (entry.request, entry.limit) == (0.2, 0.4)
        assert stand.entry("b").holding


@pytest.mark.parametrize("used_s", [-1.0, 1e300])
def test_a_lie_about_use_books_no_more_than_the_time_it_was_held(used_s: float) -> None:
    with token_stand() as stand:
        link = stand.link(stand.register("a"))
        began_s = time.monotonic()
        grant = acquire(link)
        give_back(link, grant, used_s=used_s)

        entry = stand.wait_for_entry("a", holding=False)
        assert 0 <= entry.used_s <= time.monotonic() - began_s


def test_the_end_of_a_connection_is_the_end_of_its_token() -> None:
    with token_stand() as stand:
        dying, other = stand.link(stand.register("dying")), stand.link(stand.register("other"))
        acquire(dying, longest_block_s=1000.0)
        other.send(Acquire(0.01))

        dying.close()

        assert other.wait_for_grant().token > 0
        assert stand.entry("dying").used_s > 0, "held time counts as used when nobody says otherwise"


def test_a_token_that_never_comes_back_is_taken_away_and_its_holder_is_told() -> None:
    with token_stand(window_s=0.02) as stand:
        stuck, other = stand.link(stand.register("stuck")), stand.link(stand.register("other"))
        held = acquire(stuck, longest_block_s=0.001)

        assert acquire(other).token > held.token

        assert stuck.receive(TIMEOUT_S) == Recall(held.token)
        assert stuck.receive(TIMEOUT_S) == Lost(held.token)
        give_back(stuck, held, used_s=5.0)  # too late: of no effect
        assert stand.wait_for_entry("stuck", lost=1).connected


def test_who_claims_endless_blocks_loses_its_token_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway_plugin.node.tokens.server.LONGEST_BLOCK_S", 0.01)
    with token_stand(window_s=0.02) as stand:
        liar, other = stand.link(stand.register("liar")), stand.link(stand.register("other"))
        acquire(liar, longest_block_s=1e9)

        acquire(other)

        assert stand.entry("liar").lost == 1


def test_those_who_do_not_say_who_they_are_keep_nobody_out_for_long() -> None:
    with token_stand() as stand:
        path = stand.register("a")
        strangers = [stand.raw(path) for _ in range(4)]

        link = stand.link(path)  # its turn comes once the first strangers were shown out

        assert acquire(link).token > 0
        assert is_hung_up(strangers[0])


def test_a_flood_of_frames_is_hung_up_on() -> None:
    with token_stand() as stand:
        flood = stand.raw(stand.register("flood"))
        good = stand.link(stand.register("good"))
        flood.sendall(encode(TokenHello(CREDENTIAL)))

        with pytest.raises(ConnectionError):
            for _ in range(10_000):
                flood.sendall(encode(Return(1, 0.0)) * 100)

        assert acquire(good).token > 0


def test_quotas_change_live_and_the_ledger_shows_them() -> None:
    with token_stand() as stand:
        stand.register("a", request=0.2, limit=0.2)

        assert stand.ask(Resize("a", 0.6, 0.8)) == Yes()

        entry = stand.entry("a")
        assert (entry.request, entry.limit) == (0.6, 0.8)


def test_what_the_agent_asks_that_cannot_be_is_refused_with_the_reason() -> None:
    with token_stand() as stand:
        path = str(stand.folder / "x.sock")

        for request, reason in (
            (Resize("nobody", 0.5, 1.0), "no replica nobody"),
            (Register("x", "x.ns", CREDENTIAL, path, (7,), 0.5, 1.0), "7"),
            (Register("x", "x.ns", CREDENTIAL, path, (0,), 2.0, 1.0), "request"),
            (SetUp("cpu:1", 4, exclusive=True, window_s=0.2), "scheduler of cpu:0 already"),
        ):
            answer = stand.ask(request)
            assert isinstance(answer, Refusal)
            assert reason in answer.reason, answer
        assert stand.ledger().entries == ()


def test_device_time_of_ended_replicas_stays_with_their_function() -> None:
    with token_stand() as stand:
        link = stand.link(stand.register("a"))
        grant = acquire(link)
        time.sleep(0.01)
        give_back(link, grant, used_s=0.01)
        stand.wait_for_entry("a", holding=False)

        assert stand.ask(Unregister("a")) == Yes()

        assert stand.ledger().entries == ()
        assert stand.ledger().functions == {"a.ns": pytest.approx(0.01, abs=0.002)}
        assert not (stand.folder / "a.sock").exists()


def test_a_process_that_comes_back_brings_its_use_with_it() -> None:
    with token_stand() as stand:
        stand.link(stand.register("a"), used_s=12.5)

        assert stand.entry("a").used_s == 12.5


def test_the_admin_socket_takes_nothing_but_its_protocol() -> None:
    with token_stand() as stand:
        sock = stand.raw(str(stand.admin_socket))
        sock.sendall(struct.pack(">I", 3) + b"abc")
        assert is_hung_up(sock)

        sock = stand.raw(str(stand.admin_socket))
        sock.sendall(struct.pack(">I", len(msgspec.json.encode(AskLedger()))) + msgspec.json.encode(AskLedger()))
        assert b"cpu:0" in sock.recv(4096)


def test_beside_others_the_time_a_token_is_held_counts_whatever_its_holder_says() -> None:
    with token_stand() as stand:
        link = stand.link(stand.register("liar"))
        stand.register("other")
        grant = acquire(link)
        time.sleep(0.02)

        give_back(link, grant, used_s=0.0)

        assert stand.wait_for_entry("liar", holding=False).used_s >= 0.02


def test_after_garbage_nobody_is_let_in_for_a_moment_and_then_again() -> None:
    with token_stand() as stand:
        path = stand.register("bad")
        bad = stand.raw(path)
        bad.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert is_hung_up(bad)

        waiting = stand.raw(path)
        waiting.settimeout(0.2)
        waiting.sendall(encode(TokenHello(CREDENTIAL)))
        with pytest.raises(TimeoutError):
            waiting.recv(100)

        waiting.settimeout(TIMEOUT_S)
        assert b"tokenwelcome" in waiting.recv(100)
