"""POST /system/scale-function/NAME: another wanted count, by hand or by a gateway in front."""

from __future__ import annotations

import logging
from collections.abc import Callable

import flask

from gateway_plugin.errors import BadRequest
from gateway_plugin.model import FunctionRecord
from gateway_plugin.openfaas.bodies import ScaleBody, body, function_name
from gateway_plugin.openfaas.edge import accepted
from gateway_plugin.openfaas.existing import existing
from gateway_plugin.openfaas.records import scaled
from gateway_plugin.store import Store

_log = logging.getLogger(__name__)


def scale(store: Store) -> Callable[[str], flask.Response]:
    """202, the new count visible at once; 404 where there is no such function, 400 outside its labels."""

    def handler(name: str) -> flask.Response:
        asked = body(flask.request, ScaleBody)
        canonical = function_name(flask.request, name, namespace=asked.namespace)
        if asked.replicas < 0:
            raise BadRequest(f"replicas: {asked.replicas} is not accepted; a whole number, 0 or more")

        def change(before: FunctionRecord | None) -> FunctionRecord:
            return scaled(existing(canonical, before), asked.replicas)

        store.update_function(canonical, change)
        _log.info("scaled %s to %d", canonical, asked.replicas)
        return accepted()

    return handler
