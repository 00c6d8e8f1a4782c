"""How clients send a sound: the bytes as they are, a file of a form, or base64 in JSON."""

from __future__ import annotations

from email.message import Message

import msgspec

from gshare.inputs.files import base64_file, carries_json, form_file
from gshare.request import Request

FILE_FIELD = "audio"
EXAMPLE = "speech.wav"


class AudioBody(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON form of a request."""

    audio: str
    """The file in base64; a data: URL is taken too."""


def audio_bytes(request: Request) -> bytes:
    """The sound file in a request. Raises: BadInput if there is none in any of the three forms."""
    if request.content_type == "multipart/form-data":
        return form_file(request, field=FILE_FIELD, example=EXAMPLE)
    if carries_json(request):
        return base64_file(request.json(AudioBody).audio, field=FILE_FIELD, example=EXAMPLE)
    return request.body


def declared_rate_hz(request: Request) -> int | None:
    """The `rate` parameter of the content type, as in `audio/wav; rate=8000`; None if there is no such number."""
    message = Message()
    message["Content-Type"] = request.headers.get("Content-Type", "")
    rate = message.get_param("rate")
    return int(rate) if isinstance(rate, str) and rate.isascii() and rate.isdigit() and len(rate) < 10 else None
