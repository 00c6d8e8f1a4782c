"""Forward passes as the device thread runs them: in the replica's turn, cut into blocks at gate points."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from gshare.device import Device
from gshare.gates import Leash, install, recorded_calls
from gshare.handler import Handler
from gshare.turn import Turn

if TYPE_CHECKING:
    import torch


class Passes:
    """Calls a handler's `forward`, without gradients."""

    def __init__(self, handler: Handler[Any, Any], device: Device, turn: Turn) -> None:
        self._handler, self._device, self._turn = handler, device, turn
        self._leash = Leash(_event) if device.is_cuda else None

    def __call__(self, items: list[Any]) -> list[Any]:
        """One output for each item, once the device has done all of it."""
        self._turn.begin()
        try:
            return self._forward(items)
        finally:
            self._turn.end()

    def warm_up(self) -> tuple[list[Any], float]:
        """Outputs of one example, and seconds it took. The gate points of later passes are chosen from it."""
        item = self._handler.example()
        self._turn.begin()
        started_s = time.monotonic()
        try:
            with recorded_calls(self._device.synchronize) as calls:
                outputs = self._forward([item])
        finally:
            self._turn.end()
            self._turn.idle()
        took_s = time.monotonic() - started_s
        install(calls, self._point)
        return outputs, took_s

    def _forward(self, items: list[Any]) -> list[Any]:
        import torch

        with torch.inference_mode():
            outputs = list(self._handler.forward(items))
        self._device.synchronize()
        return outputs

    def _point(self) -> None:
        if self._leash is not None:
            self._leash()
        self._turn.point()


def _event() -> torch.cuda.Event:
    import torch

    return torch.cuda.Event()  # type: ignore[no-untyped-call]
