"""The one way to say that a function is not there."""

from __future__ import annotations

from gateway_plugin.errors import NotFound
from gateway_plugin.model import FunctionRecord


def existing(name: str, record: FunctionRecord | None) -> FunctionRecord:
    """Raises: NotFound for None."""
    if record is None:
        raise NotFound(f"function {name} not found; GET /system/functions lists those that exist")
    return record
