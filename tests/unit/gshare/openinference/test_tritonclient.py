"""NVIDIA's own client, as people use it, against functions served over TCP."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException
from werkzeug.serving import make_server

from tests.served_app import served
from tests.tiny_functions import TINY_FUNCTIONS, picture

RESNET = TINY_FUNCTIONS[0]
MIRROR = "def handle(event, context): return event.body"


@contextmanager
def triton(function: str | Path, env: dict[str, str]) -> Iterator[InferenceServerClient]:
    """Its client of a function, on a port of its own."""
    with served(function, env) as flask_client:
        server = make_server("127.0.0.1", 0, flask_client.application, threaded=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        client = InferenceServerClient(f"127.0.0.1:{server.server_port}")
        try:
            yield client
        finally:
            client.close()
            server.shutdown()
            thread.join()
            server.server_close()


@pytest.fixture(scope="module")
def resnet() -> Iterator[InferenceServerClient]:
    with triton(RESNET.folder, RESNET.env()) as client:
        yield client


def items(bodies: list[bytes], *, binary: bool = True) -> InferInput:
    array = np.array(bodies, dtype=np.object_)
    return InferInput("input", list(array.shape), "BYTES").set_data_from_numpy(array, binary_data=binary)


def test_it_finds_server_and_model_ready_and_described(resnet: InferenceServerClient) -> None:
    assert resnet.is_server_live()
    assert resnet.is_server_ready()
    assert resnet.is_model_ready("resnet50")
    assert resnet.is_model_ready("resnet50", "1")
    assert not resnet.is_model_ready("resnet50", "2")
    assert resnet.get_server_metadata()["extensions"] == ["binary_tensor_data"]
    inputs = {one["name"]: one["shape"] for one in resnet.get_model_metadata("resnet50")["inputs"]}
    assert inputs == {"input": [-1], "pixel_values": [-1, 3, 224, 224]}


@pytest.mark.parametrize("form", ["all outputs, binary", "named, binary", "named, JSON"])
def test_pictures_are_classified_in_whatever_form_it_asks(resnet: InferenceServerClient, form: str) -> None:
    names = ["label", "index", "score"]
    wanted = [InferRequestedOutput(name, binary_data=form == "named, binary") for name in names]
    bodies = [picture(random.Random(seed)) for seed in range(3)]

    result = resnet.infer(
        "resnet50",
        [items(bodies)],
        request_id="request-7",
        outputs=None if form.startswith("all") else wanted,
        parameters={"top_k": 4},
    )

    label, index, score = (result.as_numpy(name) for name in names)
    assert label.shape == index.shape == score.shape == (3, 4)
    assert (index.dtype, score.dtype) == (np.int64, np.float32)
    texts = [one.decode() if isinstance(one, bytes) else one for one in label.flat]
    assert texts == [f"LABEL_{number}" for number in index.flat]
    response = result.get_response()
    assert (response["id"], response["model_name"]) == ("request-7", "resnet50")
    assert response["parameters"] == {"weights": "random:0"}


def test_preprocessed_pixels_are_taken(resnet: InferenceServerClient) -> None:
    pixels = np.random.default_rng(0).normal(size=(2, 3, 224, 224)).astype(np.float32)
    tensor = InferInput("pixel_values", list(pixels.shape), "FP32").set_data_from_numpy(pixels)

    result = resnet.infer("resnet50", [tensor], parameters={"top_k": 12})

    assert result.as_numpy("score").sum(axis=1) == pytest.approx([1, 1], abs=1e-4)


def test_what_is_refused_reaches_its_user_with_status_and_text(resnet: InferenceServerClient) -> None:
    with pytest.raises(InferenceServerException) as refused:
        resnet.infer("resnet50", [items([picture(random.Random(1)), b"garbage"])])

    assert refused.value.status() == "400"
    assert refused.value.message().startswith("item 1: ")


@pytest.mark.parametrize("binary", [True, False])
def test_a_plain_function_is_called_for_each_item(binary: bool) -> None:
    with triton(MIRROR, {"GSHARE_FUNCTION": "mirror.openfaas-fn"}) as client:
        result = client.infer("mirror", [items([b"one", "zwölf".encode()], binary=binary)])

    assert result.as_numpy("reply").tolist() == [b"one", "zwölf".encode()]


@pytest.mark.parametrize("function", TINY_FUNCTIONS[3:], ids=lambda function: function.name)
def test_the_other_functions_answer_it_as_they_answer_post(function: Any) -> None:
    body = function.sample(random.Random(0))
    with served(function.folder, function.env()) as flask_client:
        expected = flask_client.post("/", data=body, content_type=function.content_type).get_json()
    with triton(function.folder, function.env()) as client:
        result = client.infer(function.name, [items([body])])

    assert json.loads(result.as_numpy("reply")[0]).keys() == expected.keys()
    for one in client_outputs(result):
        found = result.as_numpy(one)[0]
        shown = found.decode() if isinstance(found, bytes) else found
        assert shown == (expected[one] if isinstance(shown, str) else pytest.approx(expected[one], abs=1e-4))


def client_outputs(result: Any) -> list[str]:
    return [one["name"] for one in result.get_response()["outputs"] if one["name"] != "reply"]
