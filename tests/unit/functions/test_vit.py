"""vit predicts as transformers' own image-classification pipeline does on the same weights."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from flask.testing import FlaskClient
from PIL import Image
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_sample_image
from transformers import ViTConfig, ViTForImageClassification, pipeline
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from tests.hub_cache import hub_repository
from tests.pictures import encoded
from tests.served_app import FUNCTIONS, loaded_app, served

VIT = FUNCTIONS / "vit"
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "image_size": 48,
    "num_labels": 12,
}
BLOCK = "vit.encoder.layer.0"
PUBLISHED = {
    "vit.embeddings.cls_token": (1, 1, 32),
    "vit.embeddings.position_embeddings": (1, 10, 32),
    "vit.embeddings.patch_embeddings.projection.weight": (32, 3, 16, 16),
    f"{BLOCK}.attention.attention.query.weight": (32, 32),
    f"{BLOCK}.attention.attention.key.bias": (32,),
    f"{BLOCK}.attention.attention.value.weight": (32, 32),
    f"{BLOCK}.attention.output.dense.weight": (32, 32),
    f"{BLOCK}.intermediate.dense.weight": (64, 32),
    f"{BLOCK}.output.dense.weight": (32, 64),
    f"{BLOCK}.layernorm_before.weight": (32,),
    f"{BLOCK}.layernorm_after.bias": (32,),
    "vit.layernorm.weight": (32,),
    "classifier.weight": (12, 32),
}
"""Names that google/vit-base-patch16-224 has, with the shapes of the tiny one."""


@pytest.fixture(scope="module")
def random() -> Iterator[FlaskClient]:
    with served(VIT, {"MODEL_CONFIG": json.dumps(TINY)}) as client:
        yield client


def photo(name: str) -> bytes:
    return encoded(Image.fromarray(load_sample_image(name)))


def save_model(folder: Path) -> tuple[ViTForImageClassification, Any]:
    """A small ViT with labels and weights far from nought, and its image processor."""
    torch.manual_seed(5)
    labels = {n: f"animal {n}" for n in range(12)}
    settings = {key: value for key, value in TINY.items() if key != "num_labels"}
    model = ViTForImageClassification(ViTConfig(**settings, id2label=labels, initializer_range=0.3)).eval()
    processor = ViTImageProcessorPil(size={"height": 48, "width": 48})
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return model, processor


@pytest.mark.parametrize("name", ["china.jpg", "flower.jpg"])
def test_labels_and_scores_equal_those_of_the_pipeline_on_weights_from_a_hub_cache(hub_cache: Path, name: str) -> None:
    with hub_repository(hub_cache, "team/animals") as folder:
        model, processor = save_model(folder)
    classify = pipeline("image-classification", model=model, image_processor=processor)
    expected = classify(Image.open(io.BytesIO(photo(name))), top_k=12)

    with served(VIT, {"MODEL_WEIGHTS": "hf:team/animals@main"}) as client:
        answer = client.post("/?top_k=12", data=photo(name)).get_json()

    found = answer["predictions"]
    assert [one["label"] for one in found] == [one["label"] for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
    assert found[0]["score"] - found[-1]["score"] > 0.05
    assert (answer["model"], answer["weights"]) == ("vit", "hf:team/animals@main")


def test_a_file_with_the_names_of_published_checkpoints_is_what_was_loaded(tmp_path: Path) -> None:
    save_model(tmp_path)

    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        shapes = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118 - not a dict

    assert PUBLISHED.items() <= shapes.items()
    assert len(shapes) == 4 + 16 * 2 + 4


def test_a_file_with_the_module_s_own_names_is_read_as_well(tmp_path: Path) -> None:
    model, _ = save_model(tmp_path / "published")
    save_model(tmp_path / "own")
    save_file(model.state_dict(), tmp_path / "own" / "model.safetensors")
    assert load_file(tmp_path / "own" / "model.safetensors").keys() == model.state_dict().keys()

    answers = []
    for folder in ("published", "own"):
        with served(VIT, {"MODEL_WEIGHTS": f"file:{folder}", "GSHARE_WEIGHTS_ROOT": str(tmp_path)}) as client:
            found = client.post("/?top_k=12", data=photo("china.jpg")).get_json()["predictions"]
            answers.append({one["label"]: one["score"] for one in found})
    assert answers[0] == pytest.approx(answers[1], abs=1e-6)


def test_random_weights_answer_the_sample_and_say_what_they_are(random: FlaskClient) -> None:
    answer = random.post("/?top_k=12", data=(VIT / "sample.jpg").read_bytes()).get_json()

    assert sum(one["score"] for one in answer["predictions"]) == pytest.approx(1, abs=1e-5)
    assert (answer["model"], answer["weights"]) == ("vit", "random:0")


@pytest.mark.parametrize(("variant", "parameters"), [("base", 86_567_656), ("huge", 632_045_800)])
def test_the_variants_have_as_many_parameters_as_published(variant: str, parameters: int) -> None:
    sizes = {"base": (768, 12, 12, 3072, 16), "huge": (1280, 32, 16, 5120, 14)}[variant]
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "patch_size")
    with torch.device("meta"):
        model = ViTForImageClassification(ViTConfig(**dict(zip(names, sizes, strict=True)), num_labels=1000))

    assert sum(p.numel() for p in model.parameters()) == parameters


def test_the_huge_variant_is_chosen_by_name(tmp_path: Path) -> None:
    """Narrowed in width, so that the test does not write 2.5 GB; depth and patches stay those of ViT-H/14."""
    narrow = {"hidden_size": 32, "intermediate_size": 32, "image_size": 28}
    with loaded_app(VIT, {"MODEL_VARIANT": "huge", "MODEL_CONFIG": json.dumps(narrow)}) as (client, runtime):
        assert client.post("/", data=photo("china.jpg")).status_code == 200, runtime.condition.reason
        [file] = Path(str(runtime.config.weights_cache)).glob("random-0-*.safetensors")
        with safe_open(file, "pt") as tensors:
            names = list(tensors.keys())

    assert len({name.split(".")[2] for name in names if ".layers." in name}) == 32


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"MODEL_VARIANT": "tiny"}, "MODEL_VARIANT='tiny': there are base, huge"),
        (
            {"MODEL_WEIGHTS": "file:.", "MODEL_VARIANT": "huge"},
            "MODEL_VARIANT=huge has hidden_size 1280, file:. has 32",
        ),
    ],
)
def test_a_variant_that_cannot_be_is_the_reason_it_is_not_ready(tmp_path: Path, env: dict[str, str], says: str) -> None:
    save_model(tmp_path)
    with loaded_app(VIT, {"GSHARE_WEIGHTS_ROOT": str(tmp_path)} | env) as (client, runtime):
        assert client.get("/_/ready").status_code == 503
        assert says in runtime.condition.reason


def test_pictures_of_another_size_than_the_model_s_are_found_at_the_start(tmp_path: Path) -> None:
    save_model(tmp_path)
    ViTImageProcessorPil(size={"height": 64, "width": 64}).save_pretrained(tmp_path)
    with loaded_app(VIT, {"GSHARE_WEIGHTS_ROOT": str(tmp_path), "MODEL_WEIGHTS": "file:."}) as (_, runtime):
        assert "preprocessor_config.json makes pictures of 64 pixels, the model takes 48" in runtime.condition.reason
