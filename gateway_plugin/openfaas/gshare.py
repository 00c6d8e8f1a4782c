"""GET /gshare/functions, devices, ledgers and metrics: what OpenFaaS's own calls have no words for."""

from __future__ import annotations

from collections.abc import Callable

import flask
from prometheus_client import CONTENT_TYPE_LATEST

from gateway_plugin.model import FunctionStatus
from gateway_plugin.openfaas.edge import json_response
from gateway_plugin.openfaas.gshare_views import device_view, gshare_function_view
from gateway_plugin.openfaas.ledger_metrics import ledger_metrics
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


def gshare_ledgers(store: Store) -> Callable[[], flask.Response]:
    """200 with an array of Ledger, one a device."""

    def handler() -> flask.Response:
        return json_response(store.ledgers())

    return handler


def gshare_metrics(store: Store) -> Callable[[], flask.Response]:
    """200 with the ledgers in Prometheus' exposition format."""

    def handler() -> flask.Response:
        replicas = [replica for status in store.statuses().values() for replica in status.replicas]
        text = ledger_metrics(store.ledgers(), replicas)
        return flask.Response(text, content_type=CONTENT_TYPE_LATEST)

    return handler
