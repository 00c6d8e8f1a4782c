"""The protocol's pages of a model function, of a plain one, and of one that is not ready."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import gshare
import pytest
from flask.testing import FlaskClient
from gshare.openinference.reading import HEAD_LENGTH

from tests.open_inference import binary_body, json_body, read_outputs, tensor
from tests.served_app import loaded_app, served

NAME = {"GSHARE_FUNCTION": "doubler.team-a"}
DOUBLER = """
import numpy as np
from gshare.errors import BadInput
from gshare.handler import Handler
from gshare.tensors import ANY, Datatype, Signature, TensorSpec

class Doubler(Handler):
    def load(self, context): ...
    def example(self): return [1.0]
    def decode(self, request):
        numbers = request.json(list[float])
        if 13 in numbers: raise BadInput("13 is unlucky")
        return numbers
    def forward(self, items):
        if any(14 in item for item in items): raise RuntimeError("no 14")
        return [[2 * number for number in item] for item in items]
    def signature(self):
        return Signature(
            inputs=(TensorSpec("x", Datatype.FP32, (ANY,), finite=False),),
            outputs=(TensorSpec("double", Datatype.FP64, (ANY,)),),
        )
    def decode_tensors(self, tensors, request):
        return (tensors["x"] * float(request.query.get("factor", "1"))).tolist()
    def encode_tensors(self, output, request):
        return {"double": output}
"""
PLAIN = """
import gshare.errors

def handle(event, context):
    if event.body == b"long":
        raise gshare.errors.BadInput("x" * 100_000)
    if event.body == b"refuse":
        return {"statusCode": 403, "body": "not you"}
    if event.body == b"fault":
        raise ValueError("oops")
    if event.body == b"binary":
        return b"\\xff\\xfe"
    return f"{event.method} {event.path} {event.headers.get('Content-Type')} {event.query.get('q')} {event.body!r}"
"""


@pytest.fixture(scope="module")
def doubler() -> Iterator[FlaskClient]:
    with served(DOUBLER, NAME | {"GSHARE_MAX_BODY_BYTES": "100000", "GSHARE_MAX_BATCH": "8"}) as client:
        yield client


@pytest.fixture(scope="module")
def plain() -> Iterator[FlaskClient]:
    with served(PLAIN, {"GSHARE_FUNCTION": "plain.openfaas-fn"}) as client:
        yield client


def text(*bodies: str, **rest: Any) -> Any:
    return json_body(tensor("input", "BYTES", [len(bodies)], data=bodies), **rest)


def infer(client: FlaskClient, body: Any, *, model: str = "doubler") -> Any:
    return client.post(f"/v2/models/{model}/infer", data=body.data, headers=body.headers)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v2", {"name": "fast-gshare", "version": gshare.__version__, "extensions": ["binary_tensor_data"]}),
        ("/v2/", {"name": "fast-gshare", "version": gshare.__version__, "extensions": ["binary_tensor_data"]}),
        ("/v2/health/live", {"live": True}),
        ("/v2/health/ready", {"ready": True}),
        ("/v2/models/doubler/ready", {"name": "doubler", "ready": True}),
        ("/v2/models/doubler/versions/1/ready", {"name": "doubler", "ready": True}),
        (
            "/v2/models/doubler/versions/1",
            {
                "name": "doubler",
                "versions": ["1"],
                "platform": "fast-gshare_python",
                "inputs": [
                    {"name": "input", "datatype": "BYTES", "shape": [-1]},
                    {"name": "x", "datatype": "FP32", "shape": [-1, -1]},
                ],
                "outputs": [
                    {"name": "double", "datatype": "FP64", "shape": [-1, -1]},
                    {"name": "reply", "datatype": "BYTES", "shape": [-1]},
                ],
            },
        ),
    ],
)
def test_pages_say_what_there_is(doubler: FlaskClient, path: str, expected: object) -> None:
    answer = doubler.get(path)

    assert (answer.status_code, answer.get_json()) == (200, expected)


def test_an_inference_is_answered_with_its_id_model_and_tensors(doubler: FlaskClient) -> None:
    answer = infer(doubler, text("[1, 2]", "[3, 4]", id="é-7")).get_json()

    assert answer == {
        "model_name": "doubler",
        "model_version": "1",
        "id": "é-7",
        "outputs": [
            {"name": "double", "datatype": "FP64", "shape": [2, 2], "data": [2, 4, 6, 8]},
            {"name": "reply", "datatype": "BYTES", "shape": [2], "data": ["[2.0, 4.0]", "[6.0, 8.0]"]},
        ],
    }


def test_binary_and_json_answers_are_equal_and_a_binary_one_says_where_its_json_ends(doubler: FlaskClient) -> None:
    as_json = infer(doubler, text("[1, 2]", "[3, 4]"))
    as_binary = infer(doubler, binary_body([b"[1, 2]", b"[3, 4]"]))

    expected, found = (read_outputs(one.data, dict(one.headers)) for one in (as_json, as_binary))
    assert as_binary.headers["Content-Type"] == "application/octet-stream"
    assert json.loads(as_binary.data[: int(as_binary.headers[HEAD_LENGTH])])["outputs"][0]["parameters"] == {
        "binary_data_size": 32
    }
    assert found.keys() == expected.keys()
    assert all(found[name].tolist() == expected[name].tolist() for name in found)


def test_more_items_than_are_decoded_at_once_come_back_in_order(doubler: FlaskClient) -> None:
    bodies = [f"[{number}]".encode() for number in range(128) if number not in (13, 14)]

    outputs = infer(doubler, binary_body(bodies))

    doubled = read_outputs(outputs.data, dict(outputs.headers))["double"].ravel().tolist()
    assert doubled == [2.0 * json.loads(body)[0] for body in bodies]


def test_parameters_reach_the_function_as_its_query(doubler: FlaskClient) -> None:
    tensors = json_body(tensor("x", "FP32", [1, 2], data=[1, 2]), parameters={"factor": 10})

    assert infer(doubler, tensors).get_json()["outputs"][0]["data"] == [20, 40]


@pytest.mark.parametrize(
    ("bodies", "status", "says"),
    [
        (["[1]", "[13]", "[2]"], 400, "item 1: 13 is unlucky"),
        (["[1]"] * 40 + ["[13]"], 400, "item 40: 13 is unlucky"),
        (["[1]", ""], 400, "item 1: is empty"),
        (["[1]", "[2]", "x"], 400, "item 2: the body is not JSON"),
        (["[1]", "[14]"], 500, "item 1: forward() raised RuntimeError: no 14"),
        (["[1]"] * 33 + ["[14]"], 500, "item 33: forward() raised RuntimeError: no 14"),
        (["[1]", "[1, 2]"], 400, "output 'double': item 1 has shape [2], item 0 [1]"),
        (["[1e308]"], 500, "item 0: "),
    ],
)
def test_a_fault_of_one_item_is_the_fault_of_the_request_and_says_which(
    doubler: FlaskClient, bodies: list[str], status: int, says: str
) -> None:
    refused = infer(doubler, text(*bodies))

    assert refused.status_code == status
    assert refused.get_json()["error"].startswith(says)
    assert infer(doubler, text("[1]")).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "status", "says"),
    [
        ("GET", "/v2/models/other", 404, "no model 'other' here; this function is 'doubler'"),
        ("GET", "/v2/models/doubler.team-a", 404, "no model 'doubler.team-a' here"),
        ("POST", "/v2/models/doubler/versions/2/infer", 404, "no version '2'; there is '1'"),
        ("GET", "/v2/models", 404, "no page of the protocol"),
        ("GET", "/v2/models/doubler/versions", 404, "no page"),
        ("GET", "/v2/models/doubler/stats", 404, "no page"),
        ("POST", "/v2/repository/index", 404, "no page"),
        ("GET", "/v2/models/doubler/infer", 405, "GET: this page takes POST"),
        ("POST", "/v2/health/live", 405, "POST: this page takes GET"),
    ],
)
def test_what_is_not_there_is_said_in_the_protocols_form(
    doubler: FlaskClient, method: str, path: str, status: int, says: str
) -> None:
    refused = doubler.open(path, method=method)

    assert refused.status_code == status
    assert says in refused.get_json()["error"]


def test_a_body_over_the_limit_and_a_compressed_one_are_refused_in_the_protocols_form(doubler: FlaskClient) -> None:
    large = infer(doubler, text("x" * 100_001))
    packed = doubler.post("/v2/models/doubler/infer", data=b"x", headers={"Content-Encoding": "gzip"})

    assert (large.status_code, packed.status_code) == (413, 415)
    assert "100000 bytes" in large.get_json()["error"]
    assert "'gzip' is not read" in packed.get_json()["error"]


def test_the_function_itself_still_has_every_other_path(doubler: FlaskClient) -> None:
    assert doubler.post("/v2x", data="[1]").get_json() == [2]
    assert doubler.post("/", data="[1]").get_json() == [2]


def test_a_plain_function_gets_each_item_as_a_request_of_its_own(plain: FlaskClient) -> None:
    body = text("a", "b", parameters={"content_type": "text/plain", "q": True})

    replies = infer(plain, body, model="plain").get_json()["outputs"][0]["data"]

    assert replies == ["POST / text/plain true b'a'", "POST / text/plain true b'b'"]


@pytest.mark.parametrize(
    ("bodies", "status", "says"),
    [
        (["a", "refuse"], 403, "item 1: the function answered 403: not you"),
        (["fault"], 500, "item 0: handle() raised ValueError: oops"),
        (["binary"], 400, "output 'reply' is no UTF-8 text"),
    ],
)
def test_what_a_plain_function_refuses_is_refused(
    plain: FlaskClient, bodies: list[str], status: int, says: str
) -> None:
    refused = infer(plain, text(*bodies), model="plain")

    assert (refused.status_code, refused.get_json()["error"][: len(says)]) == (status, says)


def test_an_error_that_repeats_what_a_client_sent_stays_short_on_both_protocols(plain: FlaskClient) -> None:
    ours = plain.post("/", data="long").get_json()["error"]["message"]
    theirs = infer(plain, text("long"), model="plain").get_json()["error"]

    assert ours == "x" * 1000 + "…"
    assert len(theirs) == 1001


def test_a_plain_function_that_answers_bytes_gives_them_as_binary_data(plain: FlaskClient) -> None:
    answer = infer(plain, binary_body([b"binary"]), model="plain")

    assert read_outputs(answer.data, dict(answer.headers))["reply"].tolist() == [b"\xff\xfe"]


def test_a_plain_function_keeps_the_paths_that_are_none_of_the_protocol(plain: FlaskClient) -> None:
    assert plain.get("/v2/orders/7").get_data(as_text=True).startswith("GET /v2/orders/7 ")
    assert plain.get("/v2/models/plain/ready").get_json() == {"name": "plain", "ready": True}


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "a\nb", 7, True])
def test_a_content_type_that_no_item_has_is_refused(plain: FlaskClient, kind: object) -> None:
    refused = infer(plain, text("a", parameters={"content_type": kind}), model="plain")

    assert refused.status_code == 400
    assert "parameter content_type" in refused.get_json()["error"]


def test_a_function_that_cannot_be_loaded_is_live_and_not_ready() -> None:
    with loaded_app("x = 1", NAME) as (client, _):
        refused = infer(client, text("[1]"))
        described = client.get("/v2/models/doubler")

        assert client.get("/v2/health/live").status_code == 200
        assert client.get("/v2/health/ready").get_json() == {"ready": False}
        assert client.get("/v2/models/doubler/ready").status_code == 503
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert described.status_code == 503
        assert "neither a subclass" in refused.get_json()["error"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('TensorSpec("x"', 'TensorSpec("input"'), "input input: give each a name of its own"),
        (('TensorSpec("double"', 'TensorSpec("reply"'), "output reply: give each a name of its own"),
        (("(ANY,), finite", "(0,), finite"), "input x: shape (0,)"),
    ],
)
def test_a_signature_that_cannot_work_stops_the_function_at_its_start(change: tuple[str, str], says: str) -> None:
    with loaded_app(DOUBLER.replace(*change), NAME) as (_, runtime):
        assert says in runtime.condition.reason


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (('{"double": output}', "{}"), "encode_tensors() gave no 'double'; it gave nothing"),
        (('{"double": output}', '{"double": 7}'), "output 'double' has shape []; declared is [-1]"),
        (('{"double": output}', '{"double": ["x"]}'), "output 'double' is declared FP64: "),
        (('{"double": output}', '{"double": [float("nan")]}'), "output 'double' has NaN or infinity"),
        (('{"double": output}', "1 / 0"), "item 0: encode_tensors() raised ZeroDivisionError"),
    ],
)
def test_a_function_that_does_not_give_what_it_declares_is_at_fault(change: tuple[str, str], says: str) -> None:
    with served(DOUBLER.replace(*change), NAME) as client:
        failed = infer(client, text("[1]"))

    assert failed.status_code == 500
    assert says in failed.get_json()["error"]
