"""A replica that does nothing but ask for tokens, among many connected ones that ask for none: times each answer.

Reads one JSON line (Doors) and writes one: seconds from each ask to its grant.
"""

from __future__ import annotations

import sys
import time

import msgspec
from gshare.token_link import TokenLink
from gshare.token_wire import Acquire, Return

CONNECT_S = 10.0
BLOCK_S = 0.01
"""What it says of its blocks; it computes nothing."""


class Doors(msgspec.Struct, frozen=True):
    """Who is connected, and who asks."""

    sockets: tuple[str, ...]
    credentials: tuple[str, ...]
    asking: int
    """Place of the one that asks."""
    asks: int
    in_a_row: int
    pause_s: float
    """Before each row of asks."""


def main() -> None:
    """Connect everybody, then ask."""
    doors = msgspec.json.decode(sys.stdin.buffer.read(), type=Doors)
    links = [
        TokenLink.open(path, credential, used_s=0.0, timeout_s=CONNECT_S)[0]
        for path, credential in zip(doors.sockets, doors.credentials, strict=True)
    ]
    link = links[doors.asking]
    rounds: list[float] = []
    while len(rounds) < doors.asks:
        time.sleep(doors.pause_s)
        rounds += [_round_s(link) for _ in range(doors.in_a_row)]
    sys.stdout.buffer.write(msgspec.json.encode(rounds))


def _round_s(link: TokenLink) -> float:
    asked_s = time.perf_counter()
    link.send(Acquire(BLOCK_S))
    grant = link.wait_for_grant()
    took_s = time.perf_counter() - asked_s
    link.send(Return(grant.token, 0.0, BLOCK_S))
    return took_s


if __name__ == "__main__":
    main()
