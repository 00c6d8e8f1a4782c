"""How clients send a file: as a file of a form, or in base64 within JSON."""

from __future__ import annotations

import base64
import binascii

from gshare.errors import BadInput
from gshare.request import Request

_DATA_URL = "data:"


def form_file(request: Request, *, field: str, example: str) -> bytes:
    """The file called `field`, or the only one there is. Raises: BadInput: none, or several of other names."""
    if not request.files:
        raise BadInput(f"the form has no file; send one, e.g. curl -F {field}=@{example}")
    if field in request.files:
        return request.files[field].data
    if len(request.files) > 1:
        names = ", ".join(name[:40] for name in sorted(request.files)[:8])
        raise BadInput(f"the form has several files ({names}); call the one that is meant {field}")
    return next(iter(request.files.values())).data


def base64_file(text: str, *, field: str, example: str) -> bytes:
    """The file that `field` carries in base64; a data: URL is taken too. Raises: BadInput if it is neither."""
    if text.startswith(_DATA_URL):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"{field}: not base64 ({error}); encode the file, e.g. base64 -w0 {example}") from error


def carries_json(request: Request) -> bool:
    """Whether the body is JSON, said or not."""
    return request.content_type == "application/json" or request.body.lstrip()[:1] == b"{"
