"""What a handler returned, as an HTTP response. Bytes stay bytes, text is text, data is strict JSON, None is empty."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from werkzeug.datastructures import Headers
from werkzeug.wrappers import Response

from gshare.errors import ModelFault, NonFiniteOutput

JSON = "application/json"
TEXT = "text/html; charset=utf-8"
"""OpenFaaS's Python templates send text as HTML unless the function says otherwise."""
BINARY = "application/octet-stream"
_CIRCULAR = "Circular reference"
_ENVELOPE = frozenset(("statusCode", "body", "headers"))


@dataclass(frozen=True, slots=True)
class Reply:
    """What `encode` returns to set a status or headers besides the body."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str | Sequence[str]] | Sequence[tuple[str, str]] = ()


def model_response(value: object) -> Response:
    """Response for what a handler class's `encode` returned; a dict is always data.

    Raises:
        ModelFault: nothing that HTTP can carry. NonFiniteOutput: NaN or infinity in JSON.
    """
    if isinstance(value, Reply):
        return _with(model_response(value.body), value.status, value.headers)
    return _body_response(value)


def openfaas_response(value: object) -> Response:
    """Response for what `handle(event, context)` returned, by the rules of OpenFaaS's python3-http template.

    A dict with any of statusCode, body and headers describes the response; any other dict, and a list, is JSON. A tuple
    is (body, status), (body, headers) or (body, status, headers).

    Raises:
        ModelFault: nothing that HTTP can carry. NonFiniteOutput: NaN or infinity in JSON.
    """
    if isinstance(value, Reply):
        return model_response(value)
    if isinstance(value, Mapping) and value.keys() & _ENVELOPE:
        response = _body_response(value.get("body"))
        return _with(response, value.get("statusCode", 200), value.get("headers") or ())
    if isinstance(value, tuple):
        return _from_tuple(value)
    return _body_response(value)


def encode_json(value: object) -> bytes:
    """Strict JSON in UTF-8; numpy and torch values become numbers and lists.

    Raises:
        NonFiniteOutput: NaN or infinity, with its place. ModelFault: something else JSON cannot carry.
    """
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False, default=_plain)
    except (ValueError, TypeError, RecursionError) as error:
        place = None if isinstance(error, RecursionError) or _CIRCULAR in str(error) else _find_non_finite(value, "$")
        if place is not None:
            raise NonFiniteOutput(f"the function's output has {place}; JSON carries finite numbers only") from error
        raise ModelFault(f"the function's output is not JSON: {error}") from error
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate: only as an escape can it travel
        return json.dumps(value, default=_plain).encode()


def _body_response(value: object) -> Response:
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(b"", content_type=TEXT)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return Response(bytes(value), content_type=BINARY)
    if isinstance(value, str):
        return Response(value, content_type=TEXT)
    return Response(encode_json(value), content_type=JSON)


def _from_tuple(value: tuple[Any, ...]) -> Response:
    if len(value) == 3:
        body, status, headers = value
        return _with(_body_response(body), status, headers or ())
    if len(value) == 2 and isinstance(value[1], (int, str)):
        return _with(_body_response(value[0]), value[1], ())
    if len(value) == 2:
        return _with(_body_response(value[0]), 200, value[1] or ())
    raise ModelFault(
        f"handle() returned a tuple of {len(value)}; allowed are (body, status) and (body, status, headers)"
    )


def _with(response: Response, status: object, headers: object) -> Response:
    response.status_code = _status(status)
    written: set[str] = set()
    for name, text in _pairs(headers):
        try:
            if name.lower() in written:
                response.headers.add(name, text)
            else:
                response.headers[name] = text
        except ValueError as error:
            raise ModelFault(f"the function's header {name!r}: {text!r} cannot be sent: {error}") from error
        written.add(name.lower())
    return response


def _status(status: object) -> int:
    try:
        code = int(str(status).split(" ", 1)[0])
    except ValueError:
        code = 0
    if not 100 <= code <= 599:
        raise ModelFault(f"the function's status is {status!r}; a number from 100 to 599")
    return code


def _pairs(headers: object) -> Iterable[tuple[str, str]]:
    if isinstance(headers, Headers):
        return list(headers)
    if isinstance(headers, Mapping):
        pairs = [(name, text) for name, text in headers.items()]
    elif isinstance(headers, Iterable) and not isinstance(headers, (str, bytes)):
        pairs = list(headers)
    else:
        raise ModelFault(f"the function's headers are {headers!r}; a dict or a list of (name, value) pairs")
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise ModelFault(f"the function's headers are {headers!r}; a list holds (name, value) pairs")
    return [(str(n), str(t)) for n, texts in pairs for t in (texts if isinstance(texts, (list, tuple)) else [texts])]


def _plain(value: Any) -> Any:
    """JSON's form of what `json` does not know: arrays and scalars of numpy and torch, dataclasses, structs."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form; return numbers, text, lists and dicts")


def _find_non_finite(value: Any, place: str) -> str | None:
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value} at {place}"
    if isinstance(value, Mapping):
        children = [(f"{place}.{key}", child) for key, child in value.items()]
    elif isinstance(value, (list, tuple)):
        children = [(f"{place}[{index}]", child) for index, child in enumerate(value)]
    elif isinstance(value, (str, int)) or value is None:
        return None
    else:
        try:
            return _find_non_finite(_plain(value), place)
        except TypeError:
            return None
    return next((found for path, child in children if (found := _find_non_finite(child, path))), None)
