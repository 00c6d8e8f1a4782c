"""GET /system/function/NAME: one function."""

from __future__ import annotations

from collections.abc import Callable

import flask

from gateway_plugin.openfaas.bodies import function_name
from gateway_plugin.openfaas.edge import json_response
from gateway_plugin.openfaas.existing import existing
from gateway_plugin.openfaas.views import function_view
from gateway_plugin.store import Store


def read(store: Store) -> Callable[[str], flask.Response]:
    """200; 404 where there is no such function."""

    def handler(name: str) -> flask.Response:
        canonical = function_name(flask.request, name)
        record = existing(canonical, store.function(canonical))
        invocations = store.invocations().get(canonical, 0)
        return json_response(function_view(record, store.status(canonical), invocations=invocations))

    return handler
