"""GET /system/functions: all functions of a namespace."""

from __future__ import annotations

from collections.abc import Callable

import flask

from gateway_plugin.model import FunctionStatus
from gateway_plugin.openfaas.edge import json_response
from gateway_plugin.openfaas.validation import check_namespace
from gateway_plugin.openfaas.views import function_view
from gateway_plugin.store import Store


def list_functions(store: Store) -> Callable[[], flask.Response]:
    """200 with an array, `[]` when there are none; 400 for an unknown namespace."""

    def handler() -> flask.Response:
        check_namespace(flask.request.args.get("namespace", ""))
        records, statuses, counts = store.functions(), store.statuses(), store.invocations()
        return json_response(
            [
                function_view(
                    record,
                    statuses.get(record.name, FunctionStatus(name=record.name)),
                    invocations=counts.get(record.name, 0),
                )
                for record in records
            ]
        )

    return handler
