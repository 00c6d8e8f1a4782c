"""C12: a garbled picture was a 500 and took the worker with it. It is a 4xx with a reason, and the next is served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from gshare.inputs.image import MAX_EXIF_BYTES
from PIL import Image

from tests.pictures import encoded, photograph, png_chunk, png_file
from tests.served_app import served
from tests.tiny_functions import CLASSIFIERS

PHOTO = photograph()
JPEG = encoded(PHOTO, "JPEG")
FRAMES = [PHOTO.rotate(angle) for angle in (10, 20)]
GARBLED = {
    "a cut JPEG": (JPEG[: len(JPEG) // 2], 400, "the JPEG picture is broken"),
    "a cut PNG": (encoded(PHOTO)[:-500], 400, "the PNG picture is broken"),
    "a cut WebP": (encoded(PHOTO, "WEBP")[:-300], 400, "the WEBP picture is broken"),
    "a cut BMP": (encoded(PHOTO, "BMP")[:-300], 400, "the BMP picture is broken"),
    "a cut TIFF": (encoded(PHOTO, "TIFF", compression="tiff_lzw")[:3000], 400, "the TIFF picture is broken"),
    "a text called photo.jpg": (b"These are no pixels.", 400, "no picture: 20 bytes that begin with 54 68 65"),
    "nothing": (b"", 400, "empty"),
    "HTML": (b"<!DOCTYPE html><html><body>404</body></html>", 415, "the body is HTML"),
    "a GIF of three frames": (encoded(PHOTO, "GIF", save_all=True, append_images=FRAMES), 415, "the body is GIF"),
    "SVG": (b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', 415, "SVG"),
    "a PNG without pixels": (png_file(4, 4), 400, "the PNG picture is broken"),
    "a PNG of no width": (png_file(0, 4, png_chunk(b"IDAT", b"")), 400, "the PNG picture is broken"),
}


@pytest.fixture(scope="module", params=CLASSIFIERS, ids=lambda function: function.name)
def client(request: pytest.FixtureRequest) -> Iterator[FlaskClient]:
    with served(request.param.folder, request.param.env()) as client:
        yield client


@pytest.mark.parametrize(("data", "status", "says"), GARBLED.values(), ids=GARBLED)
def test_it_is_refused_with_a_short_reason_and_the_next_good_one_is_answered(
    client: FlaskClient, data: bytes, status: int, says: str
) -> None:
    refused = client.post("/", data=data)
    message = refused.get_json()["error"]["message"]

    assert (refused.status_code, says in message) == (status, True), refused.text
    assert len(message) < 300
    assert "Traceback" not in refused.text
    assert client.post("/", data=JPEG).status_code == 200


def test_a_good_picture_with_more_metadata_than_is_read_is_answered(client: FlaskClient) -> None:
    data = encoded(PHOTO, exif=b"Exif\0\0" + bytes(MAX_EXIF_BYTES))

    assert client.post("/", data=data).get_json() == client.post("/", data=encoded(PHOTO)).get_json()


def test_of_several_pictures_in_a_file_the_first_is_answered(client: FlaskClient) -> None:
    alone = client.post("/", data=encoded(PHOTO)).get_json()
    for kind in ("TIFF", "PNG", "WEBP"):
        options = {"lossless": True, "exact": True} if kind == "WEBP" else {}
        others = [Image.new("RGB", PHOTO.size, colour) for colour in ("black", "white")]
        several = encoded(PHOTO, kind, save_all=True, append_images=others, **options)
        assert client.post("/", data=several).get_json() == alone, kind
