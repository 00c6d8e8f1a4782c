"""How clients send a sound: the bytes as they are, a file of a form, or base64 in JSON."""

from __future__ import annotations

import base64
import binascii
from email.message import Message

import msgspec

from gshare.errors import BadInput
from gshare.request import Request

FILE_FIELD = "audio"
_DATA_URL = "data:"


class AudioBody(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON form of a request."""

    audio: str
    """The file in base64; a data: URL is taken too."""


def audio_bytes(request: Request) -> bytes:
    """The sound file in a request. Raises: BadInput if there is none in any of the three forms."""
    if request.content_type == "multipart/form-data":
        return _file(request)
    if request.content_type == "application/json" or request.body.lstrip()[:1] == b"{":
        return _from_base64(request.json(AudioBody).audio)
    return request.body


def declared_rate_hz(request: Request) -> int | None:
    """The `rate` parameter of the content type, as in `audio/wav; rate=8000`; None if there is no such number."""
    message = Message()
    message["Content-Type"] = request.headers.get("Content-Type", "")
    rate = message.get_param("rate")
    return int(rate) if isinstance(rate, str) and rate.isascii() and rate.isdigit() and len(rate) < 10 else None


def _file(request: Request) -> bytes:
    if not request.files:
        raise BadInput(f"the form has no file; send one, e.g. curl -F {FILE_FIELD}=@speech.wav")
    if FILE_FIELD in request.files:
        return request.files[FILE_FIELD].data
    if len(request.files) > 1:
        names = ", ".join(sorted(request.files))
        raise BadInput(f"the form has several files ({names}); call the sound {FILE_FIELD}")
    return next(iter(request.files.values())).data


def _from_base64(text: str) -> bytes:
    if text.startswith(_DATA_URL):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"audio: not base64 ({error}); encode the file, e.g. base64 -w0 speech.wav") from error
