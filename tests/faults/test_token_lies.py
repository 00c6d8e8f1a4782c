"""What a replica says of itself, and how it says it, gives it neither more time than its share nor a neighbour's."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import msgspec
import pytest
from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Return, TokenHello
from gshare.wire import WireError, encode

from gateway_plugin.node.tokens.protocol import AskLedger, Register, Resize, SetUp, Unregister, Yes
from tests.token_stand import TokenStand, token_stand

WINDOW_S = 0.05
BLOCK_S = 0.0025
"""A twentieth of the window."""
BLOCKS = 200
REQUEST, OTHERS_REQUEST = 0.3, 0.6
LEAST = 0.5
"""The honest one's share of all blocks; its request is two thirds of both. Had the liar its way, it would get 0.42."""


@dataclass
class Saturating:
    """Takes a token whenever it can, holds it block after block, and makes of the truth what `says` says."""

    link: TokenLink
    says: float
    """Times the device time that it really used."""
    blocks: int = 0
    stopped: bool = False

    def run(self) -> None:
        self.link.send(Acquire(BLOCK_S))
        while not self.stopped:
            grant = self.link.wait_for_grant()
            used_s = self._hold(grant.slice_s)
            self.link.send(Return(grant.token, self.says * used_s, BLOCK_S, again=True))

    def _hold(self, slice_s: float | None) -> float:
        begun_s = time.monotonic()
        while not self.stopped:
            time.sleep(BLOCK_S)
            self.blocks += 1
            over = slice_s is not None and time.monotonic() - begun_s >= slice_s
            if over or self.link.receive(0) is not None:  # recalled, or lost
                break
        return time.monotonic() - begun_s


@pytest.mark.parametrize("says", [0.0, 0.5, 1000.0])
def test_a_liar_gets_no_more_than_its_share_of_the_time(says: float) -> None:
    with token_stand(window_s=WINDOW_S) as stand:
        liar = Saturating(stand.link(stand.register("liar", request=REQUEST)), says)
        honest = Saturating(stand.link(stand.register("honest", request=OTHERS_REQUEST)), 1.0)
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(one.run) for one in (liar, honest)]
            while liar.blocks + honest.blocks < BLOCKS and not any(one.done() for one in running):
                time.sleep(0.01)
            liar.stopped = honest.stopped = True
            for one in running:
                one.result(60.0)

    assert honest.blocks / (liar.blocks + honest.blocks) >= LEAST


def test_the_credential_of_another_replica_opens_only_that_ones_door() -> None:
    with token_stand() as stand:
        a, b = own_credential(stand, "a"), own_credential(stand, "b")

        with pytest.raises(WireError, match="wrong credential"):
            stand.link(a, credential="secret of b")
        with pytest.raises(WireError, match="wrong credential"):
            stand.link(b, credential="secret of a")

        stand.link(b, credential="secret of b")
        assert [entry.replica for entry in stand.ledger().entries if entry.connected] == ["b"]


@pytest.mark.parametrize(
    "request_",
    [
        SetUp("cpu:0", 8, exclusive=False, window_s=9.0),
        Register("more", "more.ns", "c", "/tmp/more.sock", (0,), 1.0, 1.0),
        Resize("a", 1.0, 1.0),
        Unregister("b"),
        AskLedger(),
    ],
    ids=lambda request: type(request).__name__,
)
def test_what_only_the_agent_may_ask_ends_a_replicas_connection_and_changes_nothing(request_: msgspec.Struct) -> None:
    with token_stand() as stand:
        a, _ = own_credential(stand, "a"), own_credential(stand, "b")
        before = stand.ledger()
        for greeting in (b"", encode(TokenHello("secret of a"))):
            sock = stand.raw(a)

            sock.sendall(greeting + encode(request_))

            while sock.recv(4096):
                pass  # until it is hung up on
        after = stand.ledger()
        assert [(one.replica, one.request, one.limit) for one in after.entries] == [
            (one.replica, one.request, one.limit) for one in before.entries
        ]


def own_credential(stand: TokenStand, replica: str) -> str:
    """Its socket; its credential is `secret of NAME`."""
    path = str(stand.folder / f"{replica}.sock")
    answer = stand.ask(Register(replica, f"{replica}.ns", f"secret of {replica}", path, (0,), 0.2, 0.4))
    assert answer == Yes()
    return path
