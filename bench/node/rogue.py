"""What a replica might do to its token scheduler, by mistake or on purpose."""

from __future__ import annotations

import contextlib
import math
import os
import random
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Lost, Return, TokenHello
from gshare.wire import encode

from bench.node.stage import Member

CONNECTS = 10_000
KEPT_OPEN = 100
SAYS_LONGEST_S = 0.01
TIMEOUT_S = 5.0
SEED = 0


def ask_once(member: Member) -> None:
    """Nothing bad: one token, given back at once. Whoever kept one between passes has returned it then."""
    link = _linked(member)
    try:
        link.send(Acquire(SAYS_LONGEST_S))
        link.send(Return(link.wait_for_grant().token, 0.0))
    finally:
        link.close()


def keep_tokens(member: Member, *, until_s: float) -> int:
    """Ask for a token, keep it until it is taken away, and ask again; how many were taken away."""
    link, lost = _linked(member), 0
    try:
        while time.monotonic() < until_s:
            link.send(Acquire(SAYS_LONGEST_S))
            link.wait_for_grant()
            lost += _kept_until_lost(link, until_s)
    finally:
        link.close()
    return lost


def _kept_until_lost(link: TokenLink, until_s: float) -> bool:
    """Whether it was, within that time."""
    while (remaining_s := until_s - time.monotonic()) > 0:
        if isinstance(link.receive(remaining_s), Lost):
            return True
    return False


def send_garbage(member: Member, *, until_s: float, core: int) -> int:
    """Bytes of all kinds on fresh connections, from another core, one after the other; how many connections."""
    kinds = tuple(_garbage(member.config.credential))

    def once(number: int) -> None:
        with _connected(member) as sock:
            sock.sendall(kinds[number % len(kinds)])

    return _often(once, until_s=until_s, core=core, most=None)


def connect_often(member: Member, *, core: int) -> None:
    """CONNECTS connections that say nothing, the last KEPT_OPEN left open till all are made."""
    open_ones: deque[socket.socket] = deque()

    def once(_number: int) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.connect(member.config.token_socket)
        except BlockingIOError:
            sock.close()  # nobody lets it in: that is one more
            return
        open_ones.append(sock)
        if len(open_ones) > KEPT_OPEN:
            open_ones.popleft().close()

    _often(once, until_s=math.inf, core=core, most=CONNECTS)
    for sock in open_ones:
        sock.close()


def _linked(member: Member) -> TokenLink:
    config = member.config
    return TokenLink.open(config.token_socket, config.credential, used_s=0.0, timeout_s=TIMEOUT_S)[0]


def _garbage(credential: str) -> Iterator[bytes]:
    """One of each kind: noise, lengths that lie, JSON that is none of ours, and good frames in the wrong order."""
    noise = random.Random(SEED)
    hello = encode(TokenHello(credential))
    yield noise.randbytes(4096)
    yield b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    yield struct.pack(">I", 2**32 - 1) + noise.randbytes(64)
    yield struct.pack(">I", 64) + noise.randbytes(64)
    yield struct.pack(">I", 2) + b"{}"
    yield struct.pack(">I", 2048) + b"[" * 2048
    yield encode(Acquire(SAYS_LONGEST_S))
    yield hello + hello
    yield hello + encode(Acquire(-1.0))
    yield hello + struct.pack(">I", 64) + noise.randbytes(64)
    yield encode(TokenHello("guessed"))


@contextmanager
def _connected(member: Member) -> Iterator[socket.socket]:
    """A connection, with patience: the scheduler lets only a few strangers in at a time."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(TIMEOUT_S)
        sock.connect(member.config.token_socket)
        yield sock


def _often(act: Callable[[int], None], *, until_s: float, core: int, most: int | None) -> int:
    """Do it again and again from a thread on that core; how often. What the other side makes of it is no matter."""
    done = 0

    def run() -> None:
        nonlocal done
        os.sched_setaffinity(0, {core})
        while time.monotonic() < until_s and done != most:
            with contextlib.suppress(OSError):
                act(done)
            done += 1

    thread = threading.Thread(target=run, name="bench-rogue")
    thread.start()
    thread.join()
    return done
