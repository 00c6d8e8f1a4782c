"""PUT /system/functions: another spec, other code or both, for a function that exists."""

from __future__ import annotations

import logging
from collections.abc import Callable

import flask

from gateway_plugin.model import FunctionRecord, FunctionStatus, ReplicaState
from gateway_plugin.openfaas.bodies import function_spec
from gateway_plugin.openfaas.code_use import retire_code
from gateway_plugin.openfaas.edge import accepted
from gateway_plugin.openfaas.existing import existing
from gateway_plugin.openfaas.records import updated
from gateway_plugin.openfaas.validation import validate
from gateway_plugin.snapshots import Snapshots
from gateway_plugin.store import Store

_log = logging.getLogger(__name__)


def update(store: Store, snapshots: Snapshots) -> Callable[[], flask.Response]:
    """202; 404 where there is no such function (faas-cli then creates it), 409 for memory below what is used."""

    def handler() -> flask.Response:
        spec = function_spec(flask.request)
        validate(spec)
        old = existing(spec.name, store.function(spec.name))
        code_digest = snapshots.take(spec.image)
        used_memory_bytes = _most_used(store.status(spec.name))

        def change(before: FunctionRecord | None) -> FunctionRecord:
            return updated(
                existing(spec.name, before), spec, code_digest=code_digest, used_memory_bytes=used_memory_bytes
            )

        record = existing(spec.name, store.update_function(spec.name, change))
        unchanged = record.generation == old.generation
        what = "unchanged" if unchanged else "updated"
        _log.info("%s %s, revision %s, generation %d", what, spec.name, record.revision, record.generation)
        if old.code_digest != code_digest:
            retire_code(store, snapshots, digest=old.code_digest)
        return accepted(revision=record.revision, unchanged=unchanged)

    return handler


def _most_used(status: FunctionStatus) -> int:
    return max((r.memory_bytes for r in status.replicas if r.state is ReplicaState.READY), default=0)
