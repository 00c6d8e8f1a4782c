"""POST /system/functions: a new function."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

import flask

from gateway_plugin.errors import Conflict
from gateway_plugin.model import FunctionRecord
from gateway_plugin.openfaas.bodies import function_spec
from gateway_plugin.openfaas.edge import accepted
from gateway_plugin.openfaas.records import created
from gateway_plugin.openfaas.validation import validate
from gateway_plugin.snapshots import Snapshots
from gateway_plugin.store import Store

_log = logging.getLogger(__name__)


def create(store: Store, snapshots: Snapshots, routed: Callable[[str], None]) -> Callable[[], flask.Response]:
    """202, once calls of it are `routed`; 400 for what cannot be accepted, 409 where the function exists."""

    def handler() -> flask.Response:
        spec = function_spec(flask.request)
        validate(spec)
        _refuse_existing(spec.name, store.function(spec.name))  # before its code is copied
        now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        record = created(spec, code_digest=snapshots.take(spec.image), created_at=now)

        def add(before: FunctionRecord | None) -> FunctionRecord:
            _refuse_existing(spec.name, before)
            return record

        store.update_function(spec.name, add)
        routed(spec.name)
        _log.info("created %s, revision %s, %d replicas", spec.name, record.revision, record.replicas)
        return accepted(revision=record.revision)

    return handler


def _refuse_existing(name: str, record: FunctionRecord | None) -> None:
    if record is not None:
        raise Conflict(f"function {name} exists; PUT changes it, DELETE removes it")
