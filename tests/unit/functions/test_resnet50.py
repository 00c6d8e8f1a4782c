"""resnet50 predicts as transformers' own image-classification pipeline does on the same weights."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from flask.testing import FlaskClient
from PIL import Image
from sklearn.datasets import load_sample_image
from transformers import ResNetConfig, ResNetForImageClassification, pipeline
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil

from tests.hub_cache import hub_repository
from tests.served_app import FUNCTIONS, loaded_app, served

RESNET = FUNCTIONS / "resnet50"
TINY = {"embedding_size": 8, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1], "num_labels": 12}


@pytest.fixture(scope="module")
def random() -> Iterator[FlaskClient]:
    with served(RESNET, {"MODEL_CONFIG": json.dumps(TINY)}) as client:
        yield client


def photo(name: str, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    Image.fromarray(load_sample_image(name)).save(stream, kind)
    return stream.getvalue()


def save_trained(folder: Path, *, safetensors_max: str = "1GB") -> tuple[ResNetForImageClassification, Any]:
    """A small ResNet with labels, statistics that are not those of initialisation, and its image processor."""
    torch.manual_seed(5)
    labels = {n: f"animal {n}" for n in range(12)}
    config = ResNetConfig(**{k: v for k, v in TINY.items() if k != "num_labels"}, id2label=labels)
    model = ResNetForImageClassification(config).train()
    with torch.no_grad():
        for _ in range(3):
            model(torch.rand(4, 3, 64, 64))
    model.eval()
    processor = ConvNextImageProcessorPil(size={"shortest_edge": 96}, crop_pct=0.875)
    model.save_pretrained(folder, max_shard_size=safetensors_max)
    processor.save_pretrained(folder)
    return model, processor


@pytest.mark.parametrize("shard", ["1GB", "20KB"], ids=["one file", "sharded"])
@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
def test_labels_and_scores_equal_those_of_the_pipeline_on_weights_from_a_hub_cache(
    hub_cache: Path, name: str, shard: str
) -> None:
    with hub_repository(hub_cache, "team/animals") as folder:
        model, processor = save_trained(folder, safetensors_max=shard)
    classify = pipeline("image-classification", model=model, image_processor=processor)
    expected = classify(Image.open(io.BytesIO(photo(name))), top_k=12)

    with served(RESNET, {"MODEL_WEIGHTS": "hf:team/animals@main"}) as client:
        answer = client.post("/?top_k=12", data=photo(name)).get_json()

    found = answer["predictions"]
    assert [one["label"] for one in found] == [one["label"] for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
    assert answer["weights"] == "hf:team/animals@main"


def test_the_three_forms_of_a_request_give_the_same_answer(random: FlaskClient) -> None:
    data = photo("flower.jpg", "JPEG")

    raw = random.post("/", data=data).get_json()
    form = random.post("/", data={"image": (io.BytesIO(data), "photo.jpg")}).get_json()
    as_json = random.post("/", json={"image": base64.b64encode(data).decode()}).get_json()

    assert raw == form == as_json
    assert len(raw["predictions"]) == 5
    assert (raw["model"], raw["weights"]) == ("resnet17", "random:0")


def test_scores_are_probabilities_over_all_labels(random: FlaskClient) -> None:
    found = random.post("/?top_k=12", data=photo("china.jpg")).get_json()["predictions"]

    assert sum(one["score"] for one in found) == pytest.approx(1, abs=1e-5)
    assert sorted(one["index"] for one in found) == list(range(12))


@pytest.mark.parametrize(
    ("path", "data", "status", "says"),
    [
        ("/", b"", 400, "the body is empty"),
        ("/", b"garbage", 400, "the body is no picture"),
        ("/", b"GIF89a....", 415, "the body is GIF"),
        ("/?top_k=13", photo("china.jpg"), 400, "top_k='13': a whole number, 1–12"),
        ("/", b'{"image": 3}', 400, "Expected `str`, got `int`"),
    ],
)
def test_wrong_input_is_refused_with_the_reason_and_the_next_request_is_served(
    random: FlaskClient, path: str, data: bytes, status: int, says: str
) -> None:
    refused = random.post(path, data=data)

    assert (refused.status_code, says in refused.get_json()["error"]["message"]) == (status, True)
    assert random.post("/", data=photo("china.jpg")).status_code == 200


def test_a_compressed_body_is_refused(random: FlaskClient) -> None:
    refused = random.post("/", data=photo("china.jpg"), headers={"Content-Encoding": "gzip"})

    assert (refused.status_code, refused.get_json()["error"]["code"]) == (415, "unsupported_media_type")


def test_the_sample_beside_the_function_is_answered(random: FlaskClient) -> None:
    assert random.post("/", data=(RESNET / "sample.jpg").read_bytes()).status_code == 200


@pytest.mark.parametrize(("depths", "parameters"), [((3, 4, 6, 3), 25_557_032), ((3, 8, 36, 3), 60_192_808)])
def test_the_variants_are_resnet_50_and_resnet_152_with_a_thousand_labels(
    depths: tuple[int, ...], parameters: int
) -> None:
    with torch.device("meta"):
        model = ResNetForImageClassification(ResNetConfig(num_labels=1000, depths=depths))

    assert sum(p.numel() for p in model.parameters()) == parameters


def test_the_deeper_variant_is_chosen_by_name_and_answers_with_it() -> None:
    narrow = {key: TINY[key] for key in ("embedding_size", "hidden_sizes", "num_labels")}
    env = {"MODEL_CONFIG": json.dumps(narrow), "MODEL_VARIANT": "152"}
    with served(RESNET, env) as client:
        assert client.post("/", data=photo("china.jpg")).get_json()["model"] == "resnet152"


@pytest.mark.parametrize(
    ("variant", "says"),
    [("151", "MODEL_VARIANT='151': there are 50, 152"), ("152", "MODEL_VARIANT=152 has depths (3, 8, 36, 3)")],
)
def test_a_variant_that_is_not_there_or_not_that_of_the_weights_is_the_reason_it_is_not_ready(
    tmp_path: Path, variant: str, says: str
) -> None:
    save_trained(tmp_path / "animals")
    env = {"MODEL_WEIGHTS": "file:animals", "GSHARE_WEIGHTS_ROOT": str(tmp_path), "MODEL_VARIANT": variant}

    with loaded_app(RESNET, env) as (_, runtime):
        assert says in runtime.condition.reason


def test_weights_of_another_number_of_labels_are_refused_by_name(tmp_path: Path) -> None:
    save_trained(tmp_path / "animals")
    file = tmp_path / "animals" / "config.json"
    labels = {str(n): str(n) for n in range(7)}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"id2label": labels}))

    env = {"MODEL_WEIGHTS": "file:animals", "GSHARE_WEIGHTS_ROOT": str(tmp_path)}
    with loaded_app(RESNET, env) as (client, runtime):
        assert client.get("/_/ready").status_code == 503
        assert "classifier.1.weight is (12, 32), the model has (7, 32)" in runtime.condition.reason
