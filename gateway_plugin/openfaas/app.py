"""The control API: OpenFaaS's `/system/…` calls and ours under `/gshare/`, behind the data plane."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from flask import Flask, Response
from werkzeug.routing import BaseConverter

from gateway_plugin.model import ROUTE_NAME
from gateway_plugin.openfaas.bodies import BODY_BYTES_LIMIT
from gateway_plugin.openfaas.create import create
from gateway_plugin.openfaas.delete import delete
from gateway_plugin.openfaas.edge import install_error_mapper
from gateway_plugin.openfaas.gshare import gshare_devices, gshare_functions, gshare_ledgers, gshare_metrics
from gateway_plugin.openfaas.guard import install_guard
from gateway_plugin.openfaas.info import healthz, info, namespaces
from gateway_plugin.openfaas.list import list_functions
from gateway_plugin.openfaas.read import read
from gateway_plugin.openfaas.scale import scale
from gateway_plugin.openfaas.update import update
from gateway_plugin.paths import Paths
from gateway_plugin.settings import Settings
from gateway_plugin.snapshots import Snapshots
from gateway_plugin.store import Store

Handler = Callable[..., Response]


class _NameConverter(BaseConverter):
    """NAME in a path, as OpenFaaS's router takes it."""

    regex = ROUTE_NAME.pattern


def create_app(settings: Settings, store: Store, *, routed: Callable[[str], None] = lambda _: None) -> Flask:
    """A WSGI app without state of its own; any number of threads may use it.

    `routed` returns when the data plane knows the function of that name (or gives up).
    """
    snapshots = Snapshots([Path(root) for root in settings.functions_path], Paths(settings.home).code)
    app = Flask(__name__, static_folder=None)
    # One byte more than allowed: Flask cuts a chunked body off there, and only so can that be told from one that fits.
    app.config.update(MAX_CONTENT_LENGTH=BODY_BYTES_LIMIT + 1, PROVIDE_AUTOMATIC_OPTIONS=False)
    app.url_map.converters["name"] = _NameConverter
    app.url_map.merge_slashes = False
    install_guard(app, bind_host=settings.bind_host)
    install_error_mapper(app)
    for method, rule, handler in _routes(store, snapshots, routed):
        app.add_url_rule(rule, endpoint=f"{method} {rule}", view_func=handler, methods=[method])
    return app


def _routes(store: Store, snapshots: Snapshots, routed: Callable[[str], None]) -> list[tuple[str, str, Handler]]:
    return [
        ("GET", "/system/functions", list_functions(store)),
        ("POST", "/system/functions", create(store, snapshots, routed)),
        ("PUT", "/system/functions", update(store, snapshots)),
        ("DELETE", "/system/functions", delete(store, snapshots)),
        ("GET", "/system/function/<name:name>", read(store)),
        ("POST", "/system/scale-function/<name:name>", scale(store)),
        ("GET", "/system/info", info),
        ("GET", "/system/namespaces", namespaces),
        ("GET", "/healthz", healthz),
        ("GET", "/gshare/functions", gshare_functions(store)),
        ("GET", "/gshare/devices", gshare_devices(store)),
        ("GET", "/gshare/ledgers", gshare_ledgers(store)),
        ("GET", "/gshare/metrics", gshare_metrics(store)),
    ]
