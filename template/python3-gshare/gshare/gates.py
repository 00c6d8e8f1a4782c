"""Gate points: places inside a forward pass where it may be interrupted, so that a long one need not hold the device.

They are forward pre-hooks on a few modules, chosen from the warm-up run to lie some milliseconds apart: a hook on
every module would cost a small model several percent. Code without modules is one block.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gshare.turn import Turn

if TYPE_CHECKING:
    from torch import nn

SPACING_S = 0.005
"""Least time between two gate points; a token's round trip is a small part of it."""


class ModuleCall(NamedTuple):
    """A module was called, so long after the pass began."""

    at_s: float
    module: int
    """Its place in `Calls.modules`."""


class Calls:
    """The module calls of one pass, in order."""

    def __init__(self) -> None:
        self.calls: list[ModuleCall] = []
        self.modules: list[nn.Module] = []
        self._places: dict[int, int] = {}

    def add(self, at_s: float, module: nn.Module) -> None:
        place = self._places.setdefault(id(module), len(self.modules))
        if place == len(self.modules):
            self.modules.append(module)
        self.calls.append(ModuleCall(at_s, place))


def choose_points(calls: Sequence[ModuleCall], *, spacing_s: float = SPACING_S) -> tuple[int, ...]:
    """Modules whose calls cut the pass into blocks of about `spacing_s`, in order of their first choice.

    Of those called within half a spacing of where a cut is due, the one that is called least: its hook costs least.
    """
    times = Counter(call.module for call in calls)
    chosen: dict[int, None] = {}
    last_s = 0.0
    for index, call in enumerate(calls):
        if call.module in chosen:
            last_s = call.at_s
        elif call.at_s - last_s >= spacing_s:
            near = [one for one in calls[index:] if one.at_s <= call.at_s + spacing_s / 2]
            best = min(near, key=lambda one: times[one.module])
            chosen[best.module] = None
            last_s = best.at_s
    return tuple(chosen)


@contextmanager
def recorded_calls(synchronize: Callable[[], None]) -> Iterator[Calls]:
    """Notes every call of a torch module in this process meanwhile, with the device's work before it done."""
    from torch.nn.modules.module import register_module_forward_pre_hook

    calls, started_s = Calls(), time.monotonic()

    def note(module: nn.Module, _: Any) -> None:
        synchronize()
        calls.add(time.monotonic() - started_s, module)

    hook = register_module_forward_pre_hook(note)
    try:
        yield calls
    finally:
        hook.remove()


def install(calls: Calls, point: Callable[[], None], *, spacing_s: float = SPACING_S) -> int:
    """Put gate points into the modules of a recorded pass; how many."""
    chosen = choose_points(calls.calls, spacing_s=spacing_s)
    for place in chosen:
        calls.modules[place].register_forward_pre_hook(lambda _module, _args: point())
    return len(chosen)


class Event(Protocol):
    """What is used of `torch.cuda.Event`."""

    def record(self) -> None: ...
    def synchronize(self) -> None: ...


class Leash:
    """Keeps the host no more than one block ahead of a CUDA device.

    Kernels are only queued by the host: without this, it would be past every gate point before the first block ran.
    """

    def __init__(self, new_event: Callable[[], Event]) -> None:
        self._new_event = new_event
        self._last: Event | None = None

    def __call__(self) -> None:
        """At a gate point: wait for the block before the one that was just queued."""
        event = self._new_event()
        event.record()
        last, self._last = self._last, event
        if last is not None:
            last.synchronize()


class SharedTurn:
    """One turn for the request threads of a plain function: the first one in takes it, the last one out gives it back.

    When it is over, those inside finish and new ones wait, so that neighbours get theirs.
    """

    def __init__(self, turn: Turn, synchronize: Callable[[], None]) -> None:
        self._turn, self._synchronize = turn, synchronize
        self._inside = 0
        self._changed = threading.Condition()

    def enter(self) -> None:
        with self._changed:
            while self._inside and self._turn.over():
                self._changed.wait()
            if not self._inside:
                self._turn.begin()
            self._inside += 1

    def leave(self) -> None:
        with self._changed:
            self._inside -= 1
            if not self._inside:
                self._synchronize()
                self._turn.end()
                self._turn.idle()
                self._changed.notify_all()


class OutermostGate:
    """Takes the turn at the outermost module call of each thread: how a plain `handle` is held to its quota.

    Torch is not imported for its sake: as soon as the function has done so, it is gated.
    """

    def __init__(self, turn: SharedTurn) -> None:
        self._turn = turn
        self._depth = threading.local()
        self._installing = threading.Lock()
        self._remove: Callable[[], None] = _nothing
        self.installed = False

    def install(self) -> Callable[[], None]:
        """Gate torch's modules once torch is there, and only once; returns what takes the gate away again."""
        if not self.installed and "torch" in sys.modules:
            with self._installing:
                if not self.installed:
                    self._remove = self._hook()
                    self.installed = True
        return self._remove

    def _hook(self) -> Callable[[], None]:
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        before = register_module_forward_pre_hook(lambda _module, _args: self._enter())
        after = register_module_forward_hook(lambda _module, _args, _output: self._leave(), always_call=True)

        def remove() -> None:
            before.remove()
            after.remove()

        return remove

    def _enter(self) -> None:
        depth = getattr(self._depth, "value", 0)
        if not depth:
            self._turn.enter()
        self._depth.value = depth + 1

    def _leave(self) -> None:
        self._depth.value -= 1
        if not self._depth.value:
            self._turn.leave()


def _nothing() -> None:
    """There is no gate yet."""
