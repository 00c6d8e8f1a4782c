"""GET /gshare/functions and /gshare/devices: what OpenFaaS's own calls have no words for."""

from __future__ import annotations

from collections.abc import Callable

import flask

from gateway_plugin.model import FunctionStatus
from gateway_plugin.openfaas.edge import json_response
from gateway_plugin.openfaas.gshare_views import device_view, gshare_function_view
from gateway_plugin.store import Store


def gshare_functions(store: Store) -> Callable[[], flask.Response]:
    """200 with an array of GshareFunctionView."""

    def handler() -> flask.Response:
        records, statuses, devices = store.functions(), store.statuses(), store.devices()
        counts = store.invocations()
        return json_response(
            [
                gshare_function_view(
                    record,
                    statuses.get(record.name, FunctionStatus(name=record.name)),
                    invocations=counts.get(record.name, 0),
                    devices=devices,
                )
                for record in records
            ]
        )

    return handler


def gshare_devices(store: Store) -> Callable[[], flask.Response]:
    """200 with an array of DeviceView."""

    def handler() -> flask.Response:
        replicas = [replica for status in store.statuses().values() for replica in status.replicas]
        return json_response([device_view(device, replicas) for device in store.devices()])

    return handler
