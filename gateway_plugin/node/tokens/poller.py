"""A small event loop for the scheduler: descriptors, and one clock that is exact to microseconds.

asyncio costs a grant more time than everything else in it, and epoll's own time-outs are whole milliseconds.
"""

from __future__ import annotations

import ctypes
import math
import os
import select
import time
from collections.abc import Callable

_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_libc = ctypes.CDLL(None, use_errno=True)


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class Timer:
    """A timer descriptor (timerfd): readable once its time has come."""

    def __init__(self) -> None:
        self.descriptor = _libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._at_s = math.inf

    def set(self, at_s: float, now_s: float) -> None:
        """Ring at that time of the monotonic clock at the latest.

        It rings earlier where an earlier time was set before: to put a time off would cost a call for each token.
        """
        if at_s >= self._at_s:
            return
        self._at_s = at_s
        wait_ns = max(1, int((at_s - now_s) * 1e9))
        spec = _Itimerspec(value=_Timespec(wait_ns // 10**9, wait_ns % 10**9))
        if _libc.timerfd_settime(self.descriptor, 0, ctypes.byref(spec), None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def rung(self) -> None:
        """Its time has come and was seen."""
        self._at_s = math.inf
        try:
            os.read(self.descriptor, 8)
        except BlockingIOError:
            return

    def close(self) -> None:
        os.close(self.descriptor)


class Poller:
    """Calls back for descriptors that are ready to be read."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._timer = Timer()
        self._epoll.register(self._timer.descriptor, select.EPOLLIN)

    def add(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._callbacks[descriptor] = callback
        self._epoll.register(descriptor, select.EPOLLIN)

    def remove(self, descriptor: int) -> None:
        """Unknown ones are none."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def wait(self, until_s: float) -> None:
        """Wait for something to read, at most until then (monotonic clock), and call back for everything there is."""
        now_s = time.monotonic()
        if until_s > now_s:
            self._timer.set(until_s, now_s)
        for descriptor, _ in self._epoll.poll(0 if until_s <= now_s else None):
            if descriptor == self._timer.descriptor:
                self._timer.rung()
            elif callback := self._callbacks.get(descriptor):
                callback()

    def close(self) -> None:
        self._timer.close()
        self._epoll.close()
