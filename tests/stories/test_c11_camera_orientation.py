"""C11: the tag that says how a camera was held was ignored, and answers were silently bad."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from io import BytesIO

import numpy as np
import pytest
from flask.testing import FlaskClient
from gshare.inputs.pixels import Preprocessing
from PIL import Image, ImageOps

from tests.pictures import decoded, encoded, photograph, turned
from tests.served_app import served
from tests.tiny_functions import CLASSIFIERS

PHOTO = photograph(300, 200)
LOSSLESS = {"PNG": {}, "TIFF": {}, "WEBP": {"lossless": True, "exact": True}}
BROKEN = {
    "nonsense": b"Exif\0\0nonsense",
    "empty": b"Exif\0\0",
    "a directory beyond the end": b"Exif\0\0II*\x00\xff\xff\xff\xff",
    "a value beyond the end": b"Exif\0\0MM\x00*\0\0\0\x08\0\x01" + struct.pack(">HHLL", 0x0112, 3, 99, 7_000),
    "an orientation of text": b"Exif\0\0II*\x00\x08\0\0\0\x01\0" + struct.pack("<HHL4s", 0x0112, 2, 4, b"six\0"),
    "an orientation of 77": b"Exif\0\0II*\x00\x08\0\0\0\x01\0" + struct.pack("<HHLHH", 0x0112, 3, 1, 77, 0),
}


@pytest.fixture(scope="module", params=CLASSIFIERS, ids=lambda function: function.name)
def client(request: pytest.FixtureRequest) -> Iterator[FlaskClient]:
    with served(request.param.folder, request.param.env()) as client:
        yield client


@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_picture_held_in_eight_ways_gives_eight_identical_tensors(kind: str) -> None:
    tensors = []
    for orientation in range(1, 9):
        stored, exif = turned(PHOTO, orientation)
        tensors.append(Preprocessing().apply(decoded(encoded(stored, kind, exif=exif, **LOSSLESS[kind]))))

    assert all(np.array_equal(tensor, tensors[0]) for tensor in tensors)
    assert np.array_equal(tensors[0], Preprocessing().apply(PHOTO))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_jpeg_is_turned_as_pillow_turns_it(orientation: int) -> None:
    stored, exif = turned(PHOTO, orientation)
    data = encoded(stored, "JPEG", exif=exif)

    expected = ImageOps.exif_transpose(Image.open(BytesIO(data)))

    assert np.array_equal(np.asarray(decoded(data)), np.asarray(expected))


def test_every_image_function_answers_alike_however_the_camera_was_held(client: FlaskClient) -> None:
    replies = []
    for orientation in range(1, 9):
        stored, exif = turned(PHOTO, orientation)
        replies.append(client.post("/?top_k=12", data=encoded(stored, exif=exif)).get_json())

    assert all(reply == replies[0] for reply in replies)
    assert client.post("/?top_k=12", data=encoded(PHOTO.rotate(180))).get_json() != replies[0]


@pytest.mark.parametrize("exif", BROKEN.values(), ids=BROKEN)
def test_a_picture_whose_exif_block_is_broken_is_used_as_it_is(client: FlaskClient, exif: bytes) -> None:
    for kind in ("JPEG", "PNG", "WEBP"):
        reply = client.post("/", data=encoded(PHOTO, kind, exif=exif))
        assert reply.status_code == 200, reply.text
        assert reply.get_json() == client.post("/", data=encoded(PHOTO, kind)).get_json()
