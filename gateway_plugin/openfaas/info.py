"""GET /system/info, /system/namespaces and /healthz: what does not depend on any function."""

from __future__ import annotations

import importlib.metadata
import platform

import flask

from gateway_plugin.model import DEFAULT_NAMESPACE
from gateway_plugin.openfaas.edge import json_response

DISTRIBUTION = "fast-gshare"
ORCHESTRATION = "process"


def info() -> flask.Response:
    """The gateway's shape: one process is gateway and provider here, and faas-cli needs both versions."""
    version = {"commit_message": "", "sha": "", "release": importlib.metadata.version(DISTRIBUTION)}
    provider = {"provider": DISTRIBUTION, "version": version, "orchestration": ORCHESTRATION}
    return json_response({"provider": provider, "version": version, "arch": platform.machine()})


def namespaces() -> flask.Response:
    return json_response([DEFAULT_NAMESPACE])


def healthz() -> flask.Response:
    """200 while this process serves; Redis is not asked, since restarting the API would not bring it back."""
    return flask.Response(b"", content_type="text/plain; charset=utf-8")
