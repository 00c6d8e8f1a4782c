"""A checked inference request through the function and back into tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.wrappers import Response

from gshare.errors import BadInput
from gshare.openinference.core import Answer, Core, Item, Refused, for_item
from gshare.openinference.decoding import shown
from gshare.openinference.encoding import encode_tensor, stack_rows
from gshare.openinference.messages import InferReply, Parameters
from gshare.openinference.metadata import VERSION
from gshare.openinference.reading import HEAD_LENGTH, Inference, read_inference
from gshare.reply import BINARY, JSON
from gshare.request import Request
from gshare.service import refuse_encoded
from gshare.tensors import INPUT, REPLY

ITEMS_AT_ONCE = 32
"""Items of one request that are decoded at a time: many small files may unpack to much."""
CONTENT_TYPE = "content_type"
"""Parameter: what an item of `input` is, as its Content-Type header would say."""
_FORM = "multipart/"
_OF_THE_WHOLE = ("Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", HEAD_LENGTH)

Row = Mapping[str, Any]


def infer(core: Core, request: Request, *, model: str) -> Response:
    """The response to `POST …/infer`. Raises: GshareError; for a fault of one item it names the item's index."""
    refuse_encoded(request)
    inference = read_inference(request.body, request.headers, core.signature)
    items = _items(inference, request)
    names = {one.spec.name for one in inference.outputs}
    rows: list[Row] = []
    for first in range(0, len(items), ITEMS_AT_ONCE):
        part = items[first : first + ITEMS_AT_ONCE]
        rows += _rows(part, core.infer(part), names)
    return _response(inference, rows, model=model, weights=core.weights)


def _items(inference: Inference, request: Request) -> list[Item]:
    """Parameters of the request are what the query of `POST /` is."""
    headers = _item_headers(request.headers, inference.parameters)
    query = MultiDict({name: _text(value) for name, value in inference.parameters.items() if value is not None})
    bodies = inference.tensors.get(INPUT.name)
    if bodies is not None:
        return [Item(i, Request(body=body, headers=headers, query=query)) for i, body in enumerate(bodies.flat)]
    shared = Request(headers=headers, query=query)
    rows = ({name: tensor[i] for name, tensor in inference.tensors.items()} for i in range(inference.items))
    return [Item(i, shared, row) for i, row in enumerate(rows)]


def _item_headers(sent: Headers, parameters: Parameters) -> Headers:
    """The request's own, but what describes its body describes an item."""
    headers = Headers([(name, text) for name, text in sent if name.title() not in _OF_THE_WHOLE])
    kind = parameters.get(CONTENT_TYPE)
    if kind is None:
        return headers
    if not isinstance(kind, str) or not (kind.isascii() and kind.isprintable()) or kind.strip().startswith(_FORM):
        raise BadInput(f"parameter {CONTENT_TYPE}: {shown(kind)}; what an item holds, such as image/png; no form")
    headers["Content-Type"] = kind
    return headers


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rows(items: Sequence[Item], answers: Sequence[Answer], names: set[str]) -> Iterator[Row]:
    for item, answer in zip(items, answers, strict=True):
        yield for_item(item.index, lambda answer=answer: _row(answer, names))  # type: ignore[misc]


def _row(answer: Answer, names: set[str]) -> Row:
    """Every output that is wanted, of one item."""
    row = dict(answer.tensors()) if names != {REPLY.name} else {}
    if REPLY.name in names:
        row[REPLY.name] = _body(answer.response())
    return row


def _body(response: Response) -> bytes:
    body = response.get_data()
    if response.status_code >= 400:
        text = f"the function answered {response.status_code}: {body[:200].decode(errors='replace')}"
        raise Refused(text, status=response.status_code)
    return body


def _response(inference: Inference, rows: Sequence[Row], *, model: str, weights: str) -> Response:
    encoded = [encode_tensor(stack_rows(rows, one.spec), one.spec, binary=one.binary) for one in inference.outputs]
    reply = InferReply(
        model_name=model,
        model_version=VERSION,
        id=inference.id,
        parameters={"weights": weights} if weights else {},
        outputs=[one.tensor for one in encoded],
    )
    head = msgspec.json.encode(reply)
    if all(one.tensor.data is not None for one in encoded):
        return Response(head, content_type=JSON)
    body = head + b"".join(one.binary for one in encoded)
    return Response(body, headers={HEAD_LENGTH: str(len(head))}, content_type=BINARY)
