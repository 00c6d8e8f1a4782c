"""DELETE /system/functions: the name is in a JSON body, as faas-cli sends it."""

from __future__ import annotations

import logging
from collections.abc import Callable

import flask

from gateway_plugin.model import FunctionRecord
from gateway_plugin.openfaas.bodies import DeleteBody, body, function_name
from gateway_plugin.openfaas.code_use import retire_code
from gateway_plugin.openfaas.edge import accepted
from gateway_plugin.openfaas.existing import existing
from gateway_plugin.snapshots import Snapshots
from gateway_plugin.store import Store

_log = logging.getLogger(__name__)


def delete(store: Store, snapshots: Snapshots) -> Callable[[], flask.Response]:
    """202 (its replicas drain afterwards); 404 where there is no such function."""

    def handler() -> flask.Response:
        asked = body(flask.request, DeleteBody)
        name = function_name(flask.request, asked.function_name, namespace=asked.namespace)
        old = existing(name, store.function(name))

        def remove(before: FunctionRecord | None) -> None:
            existing(name, before)

        store.update_function(name, remove)
        _log.info("removed %s", name)
        retire_code(store, snapshots, digest=old.code_digest)
        return accepted()

    return handler
