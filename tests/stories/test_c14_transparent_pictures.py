"""C14: an alpha channel was an error, or a fourth channel. Transparent parts are white, as they look on paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient
from PIL import Image, ImageDraw

from tests.pictures import decoded, encoded, same
from tests.served_app import served
from tests.tiny_functions import CLASSIFIERS

LOSSLESS = {"PNG": {}, "TIFF": {}, "WEBP": {"lossless": True, "exact": True}}
RED, GREEN = (200, 30, 30), (30, 200, 30)


def drawn(picture: Image.Image, colour: object) -> Image.Image:
    """A disc on whatever the background is."""
    ImageDraw.Draw(picture).ellipse((20, 10, 80, 50), fill=colour)  # type: ignore[arg-type]
    return picture


ON_WHITE = drawn(Image.new("RGB", (100, 60), "white"), RED)
SEE_THROUGH = drawn(Image.new("RGBA", (100, 60), (*GREEN, 0)), (*RED, 255))


def of_palette() -> bytes:
    """The same with colour 0 of a palette, a green, called transparent."""
    picture = Image.new("P", (100, 60), 0)
    picture.putpalette([*GREEN, *RED])
    return encoded(drawn(picture, 1), transparency=0)


@pytest.fixture(scope="module", params=CLASSIFIERS, ids=lambda function: function.name)
def client(request: pytest.FixtureRequest) -> Iterator[FlaskClient]:
    with served(request.param.folder, request.param.env()) as client:
        yield client


@pytest.mark.parametrize("kind", LOSSLESS)
def test_a_transparent_background_is_white_whatever_colour_lies_under_it(kind: str) -> None:
    assert same(decoded(encoded(SEE_THROUGH, kind, **LOSSLESS[kind])), ON_WHITE)


def test_a_transparent_colour_of_a_palette_is_white() -> None:
    assert same(decoded(of_palette()), ON_WHITE)


def test_every_image_function_answers_as_for_the_picture_on_white(client: FlaskClient) -> None:
    expected = client.post("/?top_k=12", data=encoded(ON_WHITE)).get_json()
    files = [of_palette(), *(encoded(SEE_THROUGH, kind, **options) for kind, options in LOSSLESS.items())]

    assert [client.post("/?top_k=12", data=data).get_json() for data in files] == [expected] * 4
    on_green = drawn(Image.new("RGB", (100, 60), GREEN), RED)
    assert client.post("/?top_k=12", data=encoded(on_green)).get_json() != expected
