"""C19 (pytorch/serve 1304, sglang 4097): NaN is no JSON. Out of a model it is a fault, out of a client bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from flask.testing import FlaskClient

from tests.served_app import served

RECIPROCAL = """
import torch
from gshare.handler import Handler

class Reciprocal(Handler):
    def load(self, context): ...
    def example(self): return 1.0
    def decode(self, request): return request.json(float)
    def forward(self, items): return (1 / torch.tensor(items)).log()
    def encode(self, output, request): return {"scores": [output, 0.5]}
"""


@pytest.fixture(scope="module")
def reciprocal() -> Iterator[FlaskClient]:
    with served(RECIPROCAL, {"GSHARE_FUNCTION": "reciprocal.fn"}) as client:
        yield client


def faults(client: FlaskClient) -> float:
    name = 'gshare_errors_total{error="non_finite_output",function_name="reciprocal.fn"}'
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


@pytest.mark.parametrize(("number", "what"), [("0", "inf"), ("-1", "nan")])
def test_a_model_that_yields_nan_is_a_500_that_says_where_in_strict_json_and_is_counted(
    reciprocal: FlaskClient, number: str, what: str
) -> None:
    before = faults(reciprocal)
    answer = reciprocal.post("/", data=number)
    body = json.loads(answer.data, parse_constant=lambda text: pytest.fail(f"{text} is not JSON"))

    assert (answer.status_code, body["error"]["code"]) == (500, "non_finite_output")
    assert f"{what} at $.scores[0]" in body["error"]["message"]
    assert faults(reciprocal) == before + 1


@pytest.mark.parametrize("body", ["NaN", "Infinity", "-Infinity", "1e999", "[NaN]"])
def test_nan_from_a_client_is_bad_input_and_the_next_request_is_served(reciprocal: FlaskClient, body: str) -> None:
    refused = reciprocal.post("/", data=body, content_type="application/json")

    assert (refused.status_code, refused.get_json()["error"]["code"]) == (400, "bad_input")
    assert reciprocal.post("/", data="1").status_code == 200
