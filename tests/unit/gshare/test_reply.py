from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import flask
import msgspec
import numpy as np
import pytest
import torch
from gshare.errors import ModelFault, NonFiniteOutput
from gshare.reply import Reply, encode_json, model_response, openfaas_response

PNG = b"\x89PNG\r\n\x1a\n\x00\xff"


@dataclass
class Box:
    left: float


class Label(msgspec.Struct):
    name: str


@pytest.mark.parametrize(
    ("returned", "status", "body", "content_type"),
    [
        (PNG, 200, PNG, "application/octet-stream"),
        (bytearray(PNG), 200, PNG, "application/octet-stream"),
        ("é", 200, "é".encode(), "text/html; charset=utf-8"),
        (None, 200, b"", "text/html; charset=utf-8"),
        ({"a": None}, 200, b'{"a": null}', "application/json"),
        ([1, 2], 200, b"[1, 2]", "application/json"),
        ({}, 200, b"{}", "application/json"),
        (7, 200, b"7", "application/json"),
        (("made", 201), 201, b"made", "text/html; charset=utf-8"),
        (([1], 202), 202, b"[1]", "application/json"),
        (("x", {"Content-Type": "text/plain"}), 200, b"x", "text/plain"),
        ((PNG, 200, {"Content-Type": "image/png"}), 200, PNG, "image/png"),
        ({"statusCode": 404, "body": "no"}, 404, b"no", "text/html; charset=utf-8"),
        ({"statusCode": "204"}, 204, b"", "text/html; charset=utf-8"),
        ({"body": {"a": 1}}, 200, b'{"a": 1}', "application/json"),
        ({"body": [1]}, 200, b"[1]", "application/json"),
        ({"body": PNG, "headers": {"content-type": "image/png"}}, 200, PNG, "image/png"),
        ({"body": PNG, "headers": [("Content-Type", "image/png")]}, 200, PNG, "image/png"),
        (flask.Response("own", 418), 418, b"own", "text/html; charset=utf-8"),
        (Reply([1], 203), 203, b"[1]", "application/json"),
    ],
)
def test_what_handle_returns_becomes_a_response_by_one_rule(
    returned: object, status: int, body: bytes, content_type: str
) -> None:
    response = openfaas_response(returned)

    assert (response.status_code, response.get_data(), response.headers["Content-Type"]) == (status, body, content_type)


@pytest.mark.parametrize("headers", [[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")], {"Set-Cookie": ["a=1", "b=2"]}])
def test_several_cookies_all_arrive(headers: object) -> None:
    response = openfaas_response({"body": "x", "headers": headers})

    assert response.headers.getlist("Set-Cookie") == ["a=1", "b=2"]


@pytest.mark.parametrize(
    ("returned", "says"),
    [
        ({"statusCode": 999}, "status is 999"),
        ({"statusCode": "soon"}, "status is 'soon'"),
        (("a", 200, {}, 1), "a tuple of 4"),
        ({"body": "x", "headers": "Content-Type: a"}, "headers are"),
        ({"body": "x", "headers": ["ab", "c"]}, "a list holds"),
        ({"body": "x", "headers": {"X-A": "1\r\nX-B: 2"}}, "cannot be sent"),
        (object(), "object has no JSON form"),
        ({1: {2}}, "set has no JSON form"),
    ],
)
def test_what_http_cannot_carry_is_the_functions_fault_and_says_why(returned: object, says: str) -> None:
    with pytest.raises(ModelFault, match=says):
        openfaas_response(returned)


def test_a_handler_class_may_answer_with_fields_that_openfaas_would_take_for_a_response() -> None:
    response = model_response({"body": "of text", "headers": 2})

    assert json.loads(response.get_data()) == {"body": "of text", "headers": 2}


def test_numbers_of_numpy_and_torch_and_records_become_plain_json() -> None:
    value = {
        "f": np.float32(0.5),
        "i": np.int64(3),
        "a": np.array([[1, 2]]),
        "t": torch.tensor([0.25]),
        "d": [Box(1.0)],
        "s": Label("cat"),
    }

    assert json.loads(encode_json(value)) == {
        "f": 0.5,
        "i": 3,
        "a": [[1, 2]],
        "t": [0.25],
        "d": [{"left": 1.0}],
        "s": {"name": "cat"},
    }


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"scores": [0.1, float("nan")]}, r"nan at \$.scores\[1\]"),
        ([np.float32("inf")], r"inf at \$\[0\]"),
        ({"t": torch.tensor([[1.0, float("-inf")]])}, r"-inf at \$.t\[0\]\[1\]"),
        ([Box(float("nan"))], r"nan at \$\[0\].left"),
    ],
)
def test_nan_and_infinity_are_a_fault_that_names_their_place(value: Any, place: str) -> None:
    with pytest.raises(NonFiniteOutput, match=place):
        encode_json(value)


def test_letters_travel_as_they_are_and_a_lone_surrogate_as_an_escape() -> None:
    assert encode_json(["é✓"]) == '["é✓"]'.encode()
    assert encode_json(["\ud800"]) == b'["\\ud800"]'


def test_a_list_that_holds_itself_is_a_fault_and_not_a_crash() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(ModelFault):
        encode_json(endless)
