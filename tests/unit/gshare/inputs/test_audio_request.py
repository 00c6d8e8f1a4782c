"""A sound reaches the function as bytes, in a form, or as base64 in JSON."""

from __future__ import annotations

import base64
import json

import pytest
from gshare.errors import BadInput
from gshare.inputs.audio_request import audio_bytes, declared_rate_hz
from gshare.request import Request, Upload
from werkzeug.datastructures import Headers

SOUND = b"RIFF\x00\xff"


def request(body: bytes, content_type: str, **files: bytes) -> Request:
    uploads = {field: Upload("a.wav", "audio/wav", data) for field, data in files.items()}
    return Request(body=body, headers=Headers({"Content-Type": content_type}), files=uploads)


@pytest.mark.parametrize("content_type", ["audio/wav", "audio/x-flac", "application/octet-stream", "", "text/plain"])
def test_bytes_are_the_sound_whatever_their_type(content_type: str) -> None:
    assert audio_bytes(request(SOUND, content_type)) == SOUND


@pytest.mark.parametrize("prefix", ["", "data:audio/wav;base64,"])
def test_json_holds_it_in_base64(prefix: str) -> None:
    body = json.dumps({"audio": prefix + base64.b64encode(SOUND).decode()}).encode()

    assert audio_bytes(request(body, "application/json")) == SOUND
    assert audio_bytes(request(body, "application/x-www-form-urlencoded")) == SOUND


def test_a_form_holds_it_as_its_file_or_under_its_name() -> None:
    assert audio_bytes(request(b"-", "multipart/form-data", any=SOUND)) == SOUND
    assert audio_bytes(request(b"-", "multipart/form-data", other=b"x", audio=SOUND)) == SOUND


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (request(b"-", "multipart/form-data"), "has no file"),
        (
            request(b"-", "multipart/form-data", a=SOUND, b=SOUND),
            r"several files \(a, b\); call the one that is meant audio",
        ),
        (request(b'{"audio": "%%%"}', "application/json"), "not base64"),
        (request(b'{"audio": "\xc3\xa9"}', "application/json"), "not base64"),
        (request(b'{"url": "http://example"}', "application/json"), "missing required field `audio`|unknown field"),
        (request(b'{"audio": 3}', "application/json"), "Expected `str`, got `int`"),
    ],
)
def test_a_request_without_a_sound_is_refused_with_the_reason(asked: Request, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        audio_bytes(asked)


@pytest.mark.parametrize(
    ("content_type", "rate_hz"),
    [
        ("audio/wav; rate=8000", 8000),
        ('audio/wav; rate="44100"; x=y', 44100),
        ("audio/wav", None),
        ("audio/wav; rate=fast", None),
        ("audio/wav; rate=-1", None),
        ("audio/wav; rate=" + "9" * 5000, None),
        ("", None),
    ],
)
def test_a_declared_rate_is_read_where_it_is_a_number(content_type: str, rate_hz: int | None) -> None:
    assert declared_rate_hz(request(SOUND, content_type)) == rate_hz
