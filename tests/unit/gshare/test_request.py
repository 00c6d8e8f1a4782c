from __future__ import annotations

import zlib
from typing import Any

import msgspec
import pytest
from gshare.errors import BadInput, TooLarge
from gshare.request import Request
from werkzeug.datastructures import Headers


class Numbers(msgspec.Struct):
    values: list[int]


def request(body: bytes, content_type: str = "") -> Request:
    return Request(body=body, headers=Headers({"Content-Type": content_type}))


def test_the_body_is_the_bytes_that_were_sent_whatever_they_are() -> None:
    every_byte = bytes(range(256))

    assert request(every_byte, "text/plain").body == every_byte


def test_text_honours_the_charset_of_the_content_type() -> None:
    assert request(b"\xe9", "text/plain; charset=latin-1").text() == "é"
    assert request("é".encode(), 'text/plain; charset="UTF-8"').text() == "é"
    assert request("é".encode()).text() == "é"


def test_text_that_is_not_of_its_charset_is_bad_input_that_names_the_byte() -> None:
    with pytest.raises(BadInput, match="not utf-8 text: byte 2 is 0xe9"):
        request(b"ab\xe9", "text/plain").text()


def test_an_unknown_charset_is_bad_input() -> None:
    with pytest.raises(BadInput, match="charset 'klingon'"):
        request(b"x", "text/plain; charset=klingon").text()


@pytest.mark.parametrize(
    "charset", ["zlib", "bz2", "hex", "rot13", "idna", "punycode", "undefined", "unicode_escape", "x" * 5000]
)
def test_a_codec_that_is_no_charset_is_not_let_near_the_body(charset: str) -> None:
    with pytest.raises(BadInput, match=r"charset '.{1,40}' of the content type is not known") as caught:
        request(zlib.compress(b"0" * 10_000_000), f"text/plain; charset={charset}").text()
    assert len(str(caught.value)) < 120


def test_json_is_read_as_the_type_asked_for() -> None:
    assert request(b'{"values": [1, 2]}').json(Numbers) == Numbers([1, 2])
    assert request(b"[1, null]").json() == [1, None]
    assert request('["é"]'.encode("latin-1"), "application/json; charset=latin-1").json() == ["é"]


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b'{"values": ["x"]}', r"Expected `int`, got `str` - at `\$.values\[0\]`"),
        (b"{}", "missing required field `values`"),
    ],
)
def test_json_of_another_shape_is_bad_input_that_says_where(body: bytes, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        request(body, "application/json").json(Numbers)


@pytest.mark.parametrize("body", [b"{", b"[NaN]", b'{"a": "\xe9"}', b'"\\ud800"', b"[" * 100_000, b"\x00"])
def test_what_is_not_strict_json_is_bad_input(body: bytes) -> None:
    with pytest.raises(BadInput, match="the body is not JSON"):
        request(body, "application/json").json()


@pytest.mark.parametrize(
    "body",
    [b"[1e999]", b"[-1e999]", b"[%s]" % (b"9" * 5000), b'{"values": [%s]}' % (b"9" * 5000), b'{"values": [1e999]}'],
)
def test_numbers_that_are_too_large_are_bad_input(body: bytes) -> None:
    for kind in (Any, Numbers, list[float]):
        with pytest.raises(BadInput, match="does not fit"):
            request(body).json(kind)


def test_a_body_of_a_few_megabytes_cannot_become_gigabytes() -> None:
    for piece in (b"{},", b"[],", b"0,", b"[["):
        with pytest.raises(TooLarge, match="values; at most 1,000,000"):
            request(b"[" + piece * 1_000_000 + b"0]").json()


def test_nul_and_emoji_are_text_like_any_other() -> None:
    assert request('["a\\u0000b", "👩‍🚀", "שלום"]'.encode()).json() == ["a\0b", "👩‍🚀", "שלום"]


def test_an_empty_body_is_no_json() -> None:
    with pytest.raises(BadInput, match="the body is empty; send JSON"):
        request(b"").json()


def test_the_content_type_is_given_without_its_parameters() -> None:
    assert request(b"", "Image/JPEG; q=1").content_type == "image/jpeg"
