"""Every function gives the same answers to `POST /` and to the Open Inference Protocol."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from gshare.inputs.image_settings import CONVNEXT, processor_settings
from PIL import Image

from tests.open_inference import Body, binary_body, json_body, read_outputs, tensor
from tests.served_app import served
from tests.tiny_functions import CLASSIFIERS, TINY_FUNCTIONS, TinyFunction, picture

ITEMS = 5


@dataclass(frozen=True, slots=True)
class Loaded:
    """A function that is served, some bodies, and what `POST /` answered to each alone."""

    function: TinyFunction
    client: FlaskClient
    bodies: list[bytes]
    replies: list[dict[str, Any]]

    def infer(self, body: Body, status: int = 200) -> Any:
        url = f"/v2/models/{self.function.name}/infer"
        answer = self.client.post(url, data=body.data, headers=body.headers)
        assert answer.status_code == status, answer.data
        return answer.get_json() if status != 200 else read_outputs(answer.data, dict(answer.headers))


@pytest.fixture(scope="module", params=TINY_FUNCTIONS, ids=lambda function: function.name)
def loaded(request: pytest.FixtureRequest) -> Iterator[Loaded]:
    function: TinyFunction = request.param
    source = random.Random(4)
    bodies = [function.sample(source) for _ in range(ITEMS)]
    with served(function.folder, function.env() | {"GSHARE_MAX_BATCH": "4"}) as client:
        answers = [client.post("/", data=body, content_type=function.content_type) for body in bodies]
        assert {answer.status_code for answer in answers} == {200}
        yield Loaded(function, client, bodies, [answer.get_json() for answer in answers])


def test_items_sent_together_get_the_replies_that_each_gets_alone(loaded: Loaded) -> None:
    kind = {"content_type": loaded.function.content_type}

    outputs = loaded.infer(binary_body(loaded.bodies, parameters=kind))

    replies = [json.loads(reply) for reply in outputs["reply"]]
    assert leaves(replies) == pytest.approx(leaves(loaded.replies), abs=1e-4)


def test_typed_tensors_hold_the_same_as_the_replies(loaded: Loaded) -> None:
    outputs = loaded.infer(binary_body(loaded.bodies))
    typed = [name for name in outputs if name != "reply"]

    assert typed
    for index, reply in enumerate(loaded.replies):
        for name in typed:
            expected = [one[name] for one in reply["predictions"]] if "predictions" in reply else reply[name]
            found = outputs[name][index]
            if outputs[name].dtype == object:
                expected = np.char.encode(expected)
                assert np.array_equal(found, expected)
            else:
                assert np.asarray(found) == pytest.approx(np.asarray(expected), abs=1e-3)


def test_metadata_declares_what_is_given(loaded: Loaded) -> None:
    metadata = loaded.client.get(f"/v2/models/{loaded.function.name}").get_json()
    outputs = loaded.infer(binary_body(loaded.bodies[:2]))

    assert [one["name"] for one in metadata["outputs"]] == list(outputs)
    for one in metadata["outputs"]:
        shape = outputs[one["name"]].shape
        assert len(shape) == len(one["shape"])
        assert shape[0] == 2
    assert metadata["inputs"][0] == {"name": "input", "datatype": "BYTES", "shape": [-1]}


def test_one_bad_item_of_many_refuses_the_request_and_is_named(loaded: Loaded) -> None:
    bodies = [*loaded.bodies, b"\x00 bad", *loaded.bodies]

    refused = loaded.infer(binary_body(bodies), status=400)

    assert refused["error"].startswith(f"item {ITEMS}: ")
    assert list(refused) == ["error"]


@pytest.mark.parametrize("function", CLASSIFIERS[:1], ids=lambda function: function.name)
def test_pixels_that_a_client_has_preprocessed_are_classified_as_the_picture_is(function: TinyFunction) -> None:
    bodies = [picture(random.Random(seed)) for seed in range(3)]
    images = [Image.open(io.BytesIO(body)).convert("RGB") for body in bodies]
    pixels = np.stack([processor_settings(None, default=CONVNEXT).apply(image) for image in images])
    data = pixels.tobytes()
    behind = tensor("pixel_values", "FP32", pixels.shape, parameters={"binary_data_size": len(data)})
    as_binary = json_body(behind, parameters={"top_k": 3})
    as_json = json_body(tensor("pixel_values", "FP32", pixels.shape, data=pixels.tolist()), parameters={"top_k": 3})

    with served(function.folder, function.env()) as client:
        it = Loaded(function, client, bodies, [])
        from_files = it.infer(binary_body(bodies, parameters={"top_k": 3}))
        headers = {"Inference-Header-Content-Length": str(len(as_binary.data))}
        from_binary = it.infer(Body(as_binary.data + data, headers))
        from_json = it.infer(as_json)

    for found in (from_binary, from_json):
        assert np.array_equal(found["index"], from_files["index"])
        assert found["score"] == pytest.approx(from_files["score"], abs=1e-5)
        assert found["score"].shape == (3, 3)


@pytest.mark.parametrize("value", [1e6, -1e38])
def test_pixels_that_no_preprocessing_gives_are_refused(value: float) -> None:
    function = CLASSIFIERS[0]
    pixels = np.full((1, 3, 224, 224), value, np.float32).tolist()

    with served(function.folder, function.env()) as client:
        refused = Loaded(function, client, [], []).infer(
            json_body(tensor("pixel_values", "FP32", (1, 3, 224, 224), data=pixels)), status=400
        )

    assert "preprocessed pixels lie within ±1000" in refused["error"]


def test_items_whose_answers_differ_in_shape_are_refused_as_tensors_and_given_as_replies() -> None:
    function = TINY_FUNCTIONS[-1]
    texts = [b'{"text": "a"}', b'{"texts": ["a", "b"]}']

    with served(function.folder, function.env()) as client:
        it = Loaded(function, client, [], [])
        refused = it.infer(binary_body(texts), status=400)
        replies = it.infer(binary_body(texts, outputs=[{"name": "reply"}]))["reply"]

    assert refused["error"].startswith("item 1: texts: an item of a tensor is one sentence")
    assert [sorted(json.loads(reply))[-1] for reply in replies] == ["weights", "weights"]
    assert len(json.loads(replies[1])["translations"]) == 2


def leaves(value: Any) -> list[Any]:
    """Everything in nested data, with its keys, in order; numbers apart so that they can be compared nearly."""
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in [key, *leaves(value[key])]]
    if isinstance(value, list):
        return [leaf for one in value for leaf in leaves(one)]
    return [value]
