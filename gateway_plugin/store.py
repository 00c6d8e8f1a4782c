"""The only door to Redis: key names, value versions, transactions. Keys are documented in `docs/redis.md`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec
import redis

from gateway_plugin.errors import LeaseLost, StoreFormat, StoreUnavailable
from gateway_plugin.ledger import Ledger
from gateway_plugin.model import Device, FunctionRecord, FunctionStatus, RouteTable

PREFIX = "gshare:"
FUNCTION = PREFIX + "function:"
FUNCTIONS = PREFIX + "functions"
STATUS = PREFIX + "status"
DEVICES = PREFIX + "devices"
LEDGERS = PREFIX + "ledgers"
ROUTES = PREFIX + "routes"
ROUTES_VERSION = PREFIX + "routes:version"
DEMAND = PREFIX + "demand:"
DEMAND_TTL_S = 3600
INVOCATIONS = PREFIX + "invocations"
WAKEUP = PREFIX + "wakeup:"
WAKEUP_TTL_S = 5
CHANGED = PREFIX + "changed"
"""Channel: somebody changed what is wanted; the loop looks at once."""
LEASE = PREFIX + "lease:loop"
FENCE = PREFIX + "lease:loop:fence"
VALUE_VERSION = 1

Value = TypeVar("Value", bound=msgspec.Struct)
_EXTEND_LEASE = (
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0"
)
_NEXT_NUMBER = """
local time = redis.call('time')
local number = math.max(tonumber(redis.call('get', KEYS[1]) or 0) + 1, time[1] * 1000 + math.floor(time[2] / 1000))
redis.call('set', KEYS[1], string.format('%.0f', number))
return number
"""
"""A number above all earlier ones, even those of a Redis that has lost its data: its clock in ms, or one more."""
_DROP_LEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"


class _Versioned(msgspec.Struct):
    v: int = 0


def encode(value: msgspec.Struct) -> bytes:
    return msgspec.json.encode(value)


def decode(data: bytes, kind: type[Value], *, key: str) -> Value:
    """A value of this version. Raises: StoreFormat naming key, found and expected version."""
    try:
        version = msgspec.json.decode(data, type=_Versioned).v
        if version != VALUE_VERSION:
            raise StoreFormat(
                f"{key}: version {version}; this release reads {VALUE_VERSION}, use the one that wrote it"
            )
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as error:
        raise StoreFormat(f"{key}: not a {kind.__name__} of version {VALUE_VERSION}: {error}") from error


@contextmanager
def _reachable() -> Iterator[None]:
    try:
        yield
    except redis.RedisError as error:
        raise StoreUnavailable(f"Redis: {error}") from error


class Store:
    """Typed access to what is in Redis. Every method may raise StoreUnavailable, every read StoreFormat."""

    def __init__(self, url: str, *, timeout_s: float = 5.0) -> None:
        """`url`: redis://…, rediss://… or unix:///PATH. Nothing is connected yet."""
        # Any: redis-py annotates results as a mix of its sync and async, bytes and str forms.
        self._redis: Any = redis.Redis.from_url(
            url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s, health_check_interval=30
        )

    def ping(self) -> None:
        with _reachable():
            self._redis.ping()

    # What is wanted

    def function(self, name: str) -> FunctionRecord | None:
        """`name` canonical; None: no such function."""
        with _reachable():
            data = self._redis.get(FUNCTION + name)
        return None if data is None else decode(data, FunctionRecord, key=FUNCTION + name)

    def functions(self) -> list[FunctionRecord]:
        """All functions, by name."""
        with _reachable():
            names = sorted(name.decode() for name in self._redis.smembers(FUNCTIONS))
            values = self._redis.mget([FUNCTION + name for name in names]) if names else []
        return [
            decode(data, FunctionRecord, key=FUNCTION + name)
            for name, data in zip(names, values, strict=True)
            if data is not None
        ]

    def update_function(
        self, name: str, change: Callable[[FunctionRecord | None], FunctionRecord | None]
    ) -> FunctionRecord | None:
        """Read, change and write one record as a transaction; `change` gets and returns None for "no such function".

        `change` may run again when somebody else wrote meanwhile, and may raise: then nothing is written.
        """
        key = FUNCTION + name

        def transaction(pipe: Any) -> FunctionRecord | None:
            data = pipe.get(key)
            before = None if data is None else decode(data, FunctionRecord, key=key)
            after = change(before)
            pipe.multi()
            if after is None:
                pipe.delete(key, DEMAND + name)
                pipe.srem(FUNCTIONS, name)
                pipe.hdel(INVOCATIONS, name)
                pipe.hdel(STATUS, name)
            else:
                pipe.set(key, encode(after))
                pipe.sadd(FUNCTIONS, name)
            pipe.publish(CHANGED, name)
            return after

        with _reachable():
            result: FunctionRecord | None = self._redis.transaction(transaction, key, value_from_callable=True)
        return result

    # What the loop says

    def statuses(self) -> dict[str, FunctionStatus]:
        with _reachable():
            fields = self._redis.hgetall(STATUS)
        return {key.decode(): decode(data, FunctionStatus, key=STATUS) for key, data in fields.items()}

    def status(self, name: str) -> FunctionStatus:
        """Of one function; one the loop has not seen yet has nothing ready."""
        with _reachable():
            data = self._redis.hget(STATUS, name)
        return FunctionStatus(name=name) if data is None else decode(data, FunctionStatus, key=STATUS)

    def put_statuses(self, statuses: dict[str, FunctionStatus], *, gone: list[str]) -> None:
        with _reachable(), self._redis.pipeline() as pipe:
            if statuses:
                pipe.hset(STATUS, mapping={name: encode(status) for name, status in statuses.items()})
            if gone:
                pipe.hdel(STATUS, *gone)
            pipe.execute()

    def devices(self) -> list[Device]:
        with _reachable():
            data = self._redis.get(DEVICES)
        return [] if data is None else msgspec.json.decode(data, type=list[Device])

    def put_devices(self, devices: tuple[Device, ...]) -> None:
        with _reachable():
            self._redis.set(DEVICES, msgspec.json.encode(devices))

    def ledgers(self) -> list[Ledger]:
        """Who used which device for how long, as the loop last saw it."""
        with _reachable():
            data = self._redis.get(LEDGERS)
        return [] if data is None else msgspec.json.decode(data, type=list[Ledger])

    def put_ledgers(self, ledgers: tuple[Ledger, ...]) -> None:
        with _reachable():
            self._redis.set(LEDGERS, msgspec.json.encode(ledgers))

    def next_routes_version(self) -> int:
        """A number above every earlier one, so that workers can tell which table is newer."""
        with _reachable():
            return int(self._redis.eval(_NEXT_NUMBER, 1, ROUTES_VERSION))

    def publish_routes(self, table: RouteTable) -> None:
        data = encode(table)
        with _reachable(), self._redis.pipeline() as pipe:
            pipe.set(ROUTES, data)
            pipe.publish(ROUTES, data)
            pipe.execute()

    def routes(self) -> RouteTable | None:
        with _reachable():
            data = self._redis.get(ROUTES)
        return None if data is None else decode(data, RouteTable, key=ROUTES)

    # Demand and wake-up (written by the data plane)

    def invocations(self) -> dict[str, int]:
        """Requests so far, by canonical name."""
        with _reachable():
            return {name.decode(): int(count) for name, count in self._redis.hgetall(INVOCATIONS).items()}

    def take_wakeups(self, names: list[str]) -> list[str]:
        """Which of these functions at zero replicas a request asked for; each wake-up is given out once."""
        if not names:
            return []
        with _reachable(), self._redis.pipeline() as pipe:
            for name in names:
                pipe.getdel(WAKEUP + name)
            values = pipe.execute()
        return [name for name, value in zip(names, values, strict=True) if value is not None]

    def wait_for_change(self, notify: Callable[[], None], *, stop: Callable[[], bool]) -> None:
        """Call `notify` for every message on `gshare:changed` until `stop`; reconnects by itself."""
        while not stop():
            try:
                with self._redis.pubsub(ignore_subscribe_messages=True) as channel:
                    channel.subscribe(CHANGED)
                    notify()
                    while not stop():
                        if channel.get_message(timeout=1.0) is not None:
                            notify()
            except redis.RedisError:
                time.sleep(0.2)

    # The loop's lease

    def acquire_lease(self, owner: str, *, ttl_s: float) -> int | None:
        """A fencing number above all earlier ones if nobody else holds the lease, else None."""
        with _reachable():
            if not self._redis.set(LEASE, owner, nx=True, px=int(ttl_s * 1000)):
                return None
            return int(self._redis.eval(_NEXT_NUMBER, 1, FENCE))

    def extend_lease(self, owner: str, *, ttl_s: float) -> None:
        """Raises: LeaseLost if `owner` does not hold it any more."""
        with _reachable():
            if not self._redis.eval(_EXTEND_LEASE, 1, LEASE, owner, str(int(ttl_s * 1000))):
                raise LeaseLost("another loop holds the lease")

    def release_lease(self, owner: str) -> None:
        with _reachable():
            self._redis.eval(_DROP_LEASE, 1, LEASE, owner)
