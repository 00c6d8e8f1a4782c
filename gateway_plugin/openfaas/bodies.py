"""Reading the bodies and names of control calls, as tolerant as OpenFaaS's own providers are.

Unknown keys are left alone, `null` is as good as absent, and a namespace may come in the path, the body or the query.
"""

from __future__ import annotations

from typing import Any, TypeVar

import flask
import msgspec
from werkzeug.exceptions import RequestEntityTooLarge

from gateway_plugin.errors import BadRequest
from gateway_plugin.model import DEFAULT_NAMESPACE, FunctionSpec

BODY_BYTES_LIMIT = 1024 * 1024
"""Largest body of a control call."""
Body = TypeVar("Body", bound=msgspec.Struct)
_TEXT_MAPS = ("envVars", "labels", "annotations", "limits", "requests")


class DeleteBody(msgspec.Struct, rename="camel", frozen=True):
    """Body of DELETE /system/functions."""

    function_name: str
    namespace: str = ""


class ScaleBody(msgspec.Struct, rename="camel", frozen=True):
    """Body of POST /system/scale-function/NAME; the name counts in the path."""

    replicas: int
    service_name: str = ""
    namespace: str = ""


def function_spec(request: flask.Request) -> FunctionSpec:
    """The deployment in the body, its namespace written out.

    Raises:
        BadRequest: not JSON, or a key of another type than the contract's.
    """
    raw = _json_object(request)
    for key in _TEXT_MAPS:
        if isinstance(raw.get(key), dict):
            raw[key] = {name: _as_text(value) for name, value in raw[key].items() if value is not None}
    spec = _convert(raw, FunctionSpec)
    namespace = _one_namespace(spec.namespace, request.args.get("namespace", ""))
    return msgspec.structs.replace(spec, namespace=namespace or DEFAULT_NAMESPACE)


def body(request: flask.Request, kind: type[Body]) -> Body:
    """Raises: BadRequest naming the key that is missing or wrong."""
    return _convert(_json_object(request), kind)


def function_name(request: flask.Request, name: str, *, namespace: str = "") -> str:
    """Canonical name of the function that a call is about.

    `name` is NAME or NAME.NAMESPACE (split at the last dot); `namespace` what the body says, if anything.

    Raises:
        BadRequest: no name, or two namespaces that differ.
    """
    base, dot, suffix = name.rpartition(".")
    service = base if dot else name
    if not service:
        raise BadRequest("functionName: missing; write the function's name")
    chosen = _one_namespace(suffix if dot else "", namespace, request.args.get("namespace", ""))
    return f"{service}.{chosen or DEFAULT_NAMESPACE}"


def _one_namespace(*given: str) -> str:
    different = sorted({namespace for namespace in given if namespace})
    if len(different) > 1:
        raise BadRequest(f"namespace: {' and '.join(different)} are both given; write one")
    return different[0] if different else ""


def _json_object(request: flask.Request) -> dict[str, Any]:
    data = request.get_data()
    if len(data) > BODY_BYTES_LIMIT:
        raise RequestEntityTooLarge
    if not data:
        raise BadRequest("body: empty; a JSON object is expected")
    try:
        raw = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadRequest(f"body: not a JSON object: {error}") from error
    return {key: value for key, value in raw.items() if value is not None}


def _convert(raw: dict[str, Any], kind: type[Body]) -> Body:
    try:
        return msgspec.convert(raw, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BadRequest(f"body: {error}") from error


def _as_text(value: object) -> object:
    """YAML users write `true` and `10` where OpenFaaS means text; what is no scalar stays, and is refused later."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value
