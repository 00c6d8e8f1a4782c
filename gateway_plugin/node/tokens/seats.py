"""A replica's door to the scheduler: its own socket, who sits behind it, and what it holds."""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable
from pathlib import Path

from gshare.token_wire import (
    FROM_HOLDER,
    TOKEN_PROTOCOL,
    FromHolder,
    Grant,
    TokenHello,
    TokenRefused,
    TokenWelcome,
)

from gateway_plugin.listeners import listen_unix
from gateway_plugin.node.tokens.connection import Connection, open_connection
from gateway_plugin.node.tokens.poller import Poller
from gateway_plugin.node.tokens.protocol import Register

STRANGERS = 4
"""Connections of one replica that have not said who they are; more wait outside, and cost nothing."""
SHUT_S = 0.5
"""After somebody misbehaved nobody is let in for so long: whoever sends garbage without pause costs next to nothing."""
HELLO_S = 2.0
"""Longest time to say it."""
FRAME_BYTES = 4096
LONGEST_BLOCK_S = 30.0
"""No block is believed to be longer, whatever a replica says: who claims one for ever would keep its token for ever."""
BOOKED_S = 1.0
"""Longest slice that is told, even where the rule has no end for it: what a replica used is booked when it returns its
token, and a ledger that is older than a second would be of little use."""


class Seat:
    """One registered replica: at most one connection has proved to be it, and that one may hold a token."""

    def __init__(
        self,
        asked: Register,
        *,
        poller: Poller,
        greeted: Callable[[Seat, TokenHello], float],
        take: Callable[[Seat, FromHolder], None],
        left: Callable[[Seat, str], None],
    ) -> None:
        """`greeted` is told of a hello that is good, and says the window; `left` that its connection has ended."""
        self.asked = asked
        self.holder: Connection | None = None
        self.token = 0
        """Number of the live token; 0: none."""
        self.granted_s = 0.0
        self.slice_s = 0.0
        self.alone = False
        """Nobody else could want its units when it was granted, so it may be kept while nothing runs."""
        self.asked_s = 0.0
        """When it asked; 0: it waits for nothing."""
        self._poller = poller
        self._greeted, self._take, self._left = greeted, take, left
        self._strangers: set[Connection] = set()
        self._listener = listen_unix(Path(asked.socket), backlog=8)
        self._listener.setblocking(False)
        self._listening = False
        self._shut_until_s = 0.0
        self._listen()

    def grant(self, token: int, *, slice_s: float, alone: bool, now_s: float) -> None:
        self.token, self.granted_s, self.slice_s, self.asked_s = token, now_s, slice_s, 0.0
        self.alone = alone
        if self.holder is not None:
            self.holder.send(Grant(token, min(slice_s, BOOKED_S), alone))

    def used_s(self, reported_s: float, now_s: float) -> float:
        """Device time of the token that comes back now.

        What its holder says only counts where it kept others from nothing, and up to the time held. Beside others it is
        the time held: who keeps a token of theirs pays for it, whatever it says.
        """
        held_s = now_s - self.granted_s
        return min(reported_s, held_s) if self.alone else held_s

    def check_strangers(self, now_s: float) -> None:
        """Show those out that do not say who they are, and open again where it was shut. To be called now and then."""
        for stranger in [one for one in self._strangers if now_s - one.opened_s > HELLO_S]:
            stranger.close("")
        self._listen()

    def close(self) -> None:
        """The replica has ended: nobody may sit here any more."""
        self._unlisten()
        self._listener.close()
        Path(self.asked.socket).unlink(missing_ok=True)
        for connection in (*self._strangers, *([self.holder] if self.holder else [])):
            connection.close("")

    def _listen(self) -> None:
        is_open = self._listener.fileno() >= 0 and time.monotonic() >= self._shut_until_s
        if is_open and not self._listening and len(self._strangers) < STRANGERS:
            self._listening = True
            self._poller.add(self._listener.fileno(), self._accept)

    def _unlisten(self) -> None:
        if self._listening:
            self._listening = False
            self._poller.remove(self._listener.fileno())

    def _accept(self) -> None:
        sock = open_connection(self._listener)
        if sock is None:
            return
        stranger = Connection(sock, FROM_HOLDER, take=self._received, ended=self._ended, limit_bytes=FRAME_BYTES)
        self._strangers.add(stranger)
        self._poller.add(stranger.fileno(), stranger.read)
        if len(self._strangers) >= STRANGERS:
            self._unlisten()

    def _received(self, connection: Connection, message: FromHolder) -> None:
        if connection is self.holder:
            self._take(self, message)
        elif isinstance(message, TokenHello):
            self._hello(connection, message)
        else:
            connection.close(f"{type(message).__name__} before a hello")

    def _hello(self, connection: Connection, hello: TokenHello) -> None:
        if reason := self._refusal(hello):
            connection.send(TokenRefused(reason))
            connection.close("" if self.holder is not None else reason)
            return
        self._strangers.discard(connection)
        self._listen()
        window_s = self._greeted(self, hello)
        self.holder = connection
        connection.send(TokenWelcome(window_s))

    def _refusal(self, hello: TokenHello) -> str:
        if not hmac.compare_digest(hello.credential.encode(), self.asked.credential.encode()):
            return "wrong credential"
        if hello.protocol not in (TOKEN_PROTOCOL, TOKEN_PROTOCOL - 1):
            return f"protocol {hello.protocol}, this scheduler speaks {TOKEN_PROTOCOL}; rebuild the image"
        if self.holder is not None:
            return "another process of this replica is connected; one token a replica"
        return ""

    def _ended(self, connection: Connection, reason: str) -> None:
        self._poller.remove(connection.fileno())
        self._strangers.discard(connection)
        if connection is self.holder:
            self.holder = None
            self._left(self, reason)
        if reason:
            self._shut_until_s = time.monotonic() + SHUT_S
            self._unlisten()
        self._listen()
