"""resnext: its arithmetic against another formulation of it, and the files that torchvision and timm publish."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flask.testing import FlaskClient
from gshare.inputs.pixels import IMAGENET_MEAN, IMAGENET_STD
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file
from sklearn.datasets import load_sample_image
from torch.nn.functional import conv2d, max_pool2d, pad

from tests.pictures import encoded
from tests.served_app import FUNCTIONS, loaded_app, served

RESNEXT = FUNCTIONS / "resnext"
DEPTHS = {50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
TINY = {"depths": [1, 2], "groups": 4, "width_per_group": 6, "num_labels": 12}
State = dict[str, torch.Tensor]


def torchvision_shapes(layers: int, *, groups: int, width: int, labels: int = 1000) -> dict[str, tuple[int, ...]]:
    """Every tensor of torchvision's `resnext{layers}_{groups}x{width}d`, by its name there."""
    shapes: dict[str, tuple[int, ...]] = {"conv1.weight": (64, 3, 7, 7)} | norm("bn1", 64)
    inputs = 64
    for stage, blocks in enumerate(DEPTHS[layers]):
        inner, outputs = groups * width * 2**stage, 256 * 2**stage
        for block in range(blocks):
            name = f"layer{stage + 1}.{block}"
            shapes |= {f"{name}.conv1.weight": (inner, inputs, 1, 1)} | norm(f"{name}.bn1", inner)
            shapes |= {f"{name}.conv2.weight": (inner, width * 2**stage, 3, 3)} | norm(f"{name}.bn2", inner)
            shapes |= {f"{name}.conv3.weight": (outputs, inner, 1, 1)} | norm(f"{name}.bn3", outputs)
            if block == 0:
                shapes |= {f"{name}.downsample.0.weight": (outputs, inputs, 1, 1)}
                shapes |= norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    return shapes | {"fc.weight": (labels, inputs), "fc.bias": (labels,)}


def norm(name: str, channels: int) -> dict[str, tuple[int, ...]]:
    parts = ("weight", "bias", "running_mean", "running_var")
    return {f"{name}.{part}": (channels,) for part in parts} | {f"{name}.num_batches_tracked": ()}


def random_state(shapes: dict[str, tuple[int, ...]]) -> State:
    """Weights as of a trained network: statistics of their own, sums that stay about one."""
    random = torch.Generator().manual_seed(3)
    state: State = {}
    for name, shape in shapes.items():
        if name.endswith("num_batches_tracked"):
            state[name] = torch.tensor(7)
        elif name.endswith("running_var"):
            state[name] = 0.5 + torch.rand(shape, generator=random)
        elif len(shape) > 1:
            state[name] = torch.randn(shape, generator=random) / np.sqrt(np.prod(shape[1:]) / 2)
        else:
            state[name] = 0.3 * torch.randn(shape, generator=random) + (0.3 if ".bn3.weight" in name else 0.7)
    return state


def normalised(state: State, name: str, values: torch.Tensor) -> torch.Tensor:
    """Batch normalisation with kept statistics, written out."""
    weight, bias, mean, variance = (
        state[f"{name}.{part}"][:, None, None] for part in ("weight", "bias", "running_mean", "running_var")
    )
    return weight * (values - mean) / torch.sqrt(variance + 1e-5) + bias


def block_by_paths(state: State, name: str, inputs: torch.Tensor, *, groups: int, stride: int) -> torch.Tensor:
    """A block as the paper defines it: narrow paths beside each other, each by itself, whose results are summed.

    No convolution here is a grouped one.
    """
    narrow = torch.relu(normalised(state, f"{name}.bn1", conv2d(inputs, state[f"{name}.conv1.weight"])))
    first = f"{name}.conv2.weight"
    paths = zip(narrow.chunk(groups, 1), state[first].chunk(groups, 0), strict=True)
    within = torch.cat([conv2d(path, weight, stride=stride, padding=1) for path, weight in paths], 1)
    within = torch.relu(normalised(state, f"{name}.bn2", within))
    widening = state[f"{name}.conv3.weight"].chunk(groups, 1)
    total = sum(conv2d(path, weight) for path, weight in zip(within.chunk(groups, 1), widening, strict=True))
    assert isinstance(total, torch.Tensor)
    shortcut = inputs
    if f"{name}.downsample.0.weight" in state:
        strided = inputs[:, :, ::stride, ::stride]
        shortcut = normalised(state, f"{name}.downsample.1", conv2d(strided, state[f"{name}.downsample.0.weight"]))
    return torch.relu(normalised(state, f"{name}.bn3", total) + shortcut)


def logits_by_paths(state: State, pixels: torch.Tensor, *, groups: int, depths: tuple[int, ...]) -> torch.Tensor:
    """The whole network so."""
    found = torch.relu(normalised(state, "bn1", conv2d(pixels, state["conv1.weight"], stride=2, padding=3)))
    found = max_pool2d(pad(found, (1, 1, 1, 1), value=-torch.inf), 3, 2)
    for stage, blocks in enumerate(depths):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            found = block_by_paths(state, f"layer{stage + 1}.{block}", found, groups=groups, stride=stride)
    return found.flatten(2).mean(-1) @ state["fc.weight"].T + state["fc.bias"]


def prepared(image: Image.Image) -> torch.Tensor:
    """As torchvision prepares a picture: shorter side to 256, bilinear; 224 × 224 from the centre; normalised."""
    width, height = image.size
    scaled = (256, int(256 * height / width)) if width < height else (int(256 * width / height), 256)
    left, top = (round((side - 224) / 2) for side in scaled)
    square = image.resize(scaled, Image.Resampling.BILINEAR).crop((left, top, left + 224, top + 224))
    values = (np.asarray(square) / 255 - IMAGENET_MEAN) / IMAGENET_STD
    return torch.from_numpy(values.astype(np.float32).transpose(2, 0, 1))[None]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, State]:
    """A folder as timm publishes its ResNeXt-50 32x4d, which holds torchvision's tensors under their names."""
    folder = tmp_path_factory.mktemp("weights") / "resnext50"
    folder.mkdir()
    state = random_state(torchvision_shapes(50, groups=32, width=4))
    save_file(state, folder / "model.safetensors")
    picture = {"input_size": [3, 224, 224], "interpolation": "bilinear", "crop_pct": 0.875, "crop_mode": "center"}
    statistics = {"mean": list(IMAGENET_MEAN), "std": list(IMAGENET_STD), "tag": "tv_in1k", "custom_load": False}
    config = {"architecture": "resnext50_32x4d", "num_classes": 1000, "num_features": 2048}
    (folder / "config.json").write_text(json.dumps(config | {"pretrained_cfg": picture | statistics}))
    return folder, state


@pytest.fixture(scope="module")
def random() -> Iterator[FlaskClient]:
    with served(RESNEXT, {"MODEL_CONFIG": json.dumps(TINY)}) as client:
        yield client


def test_weights_with_torchvision_s_names_give_what_the_paper_s_paths_give(published: tuple[Path, State]) -> None:
    folder, state = published
    photo = Image.fromarray(load_sample_image("flower.jpg"))
    expected = logits_by_paths(state, prepared(photo), groups=32, depths=DEPTHS[50]).softmax(-1)[0].numpy()

    env = {"MODEL_WEIGHTS": f"file:{folder.name}", "GSHARE_WEIGHTS_ROOT": str(folder.parent)}
    with served(RESNEXT, env) as client:
        answer = client.post("/?top_k=1000", data=encoded(photo)).get_json()

    found = {one["index"]: one["score"] for one in answer["predictions"]}
    assert np.ptp(expected) > 1e-3
    assert [found[index] for index in range(1000)] == pytest.approx(expected.tolist(), abs=1e-5)
    assert answer["predictions"][0]["index"] == int(expected.argmax())
    assert (answer["model"], answer["weights"]) == ("resnext50_32x4d", "file:resnext50")


@pytest.mark.parametrize(("layers", "width", "count"), [(50, 4, 25_028_904), (101, 8, 88_791_336)])
def test_those_names_are_all_there_are(layers: int, width: int, count: int) -> None:
    shapes = torchvision_shapes(layers, groups=32, width=width)
    parameters = [name for name in shapes if name.rpartition(".")[2] in ("weight", "bias")]

    assert len(shapes) == {50: 320, 101: 626}[layers]
    assert len(parameters) == {50: 161, 101: 314}[layers]
    assert sum(int(np.prod(shapes[name])) for name in parameters) == count


@pytest.mark.parametrize(
    ("env", "layers", "groups", "width"),
    [
        ({}, 50, 32, 4),
        ({"MODEL_VARIANT": "50"}, 50, 32, 4),
        ({"MODEL_VARIANT": "101", "MODEL_CONFIG": '{"groups": 2}'}, 101, 2, 8),
    ],
)
def test_random_weights_have_the_names_and_shapes_of_the_variant_asked_for(
    tmp_path: Path, env: dict[str, str], layers: int, groups: int, width: int
) -> None:
    with served(RESNEXT, env | {"GSHARE_WEIGHTS_CACHE": str(tmp_path)}) as client:
        answer = client.post("/?top_k=1000", data=(RESNEXT / "sample.jpg").read_bytes()).get_json()
    [file] = tmp_path.glob("random-0-*.safetensors")

    assert shapes_in(file) == torchvision_shapes(layers, groups=groups, width=width)
    assert answer["model"] == f"resnext{layers}_{groups}x{width}d"
    assert answer["predictions"][0]["score"] < 0.5, "random weights are sure of nothing"


def shapes_in(file: Path) -> dict[str, tuple[int, ...]]:
    with safe_open(file, "pt") as tensors:
        return {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118


def test_labels_come_from_timm_s_config_or_count_up(tmp_path: Path) -> None:
    shapes = torchvision_shapes(50, groups=32, width=4, labels=3)
    save_file(random_state(shapes), tmp_path / "model.safetensors")
    names = {"label_names": ["n01", "n02", "n03"], "label_descriptions": {"n01": "cat", "n02": "dog"}}
    config: dict[str, Any] = {"architecture": "resnext50_32x4d", "num_classes": 3}
    env = {"MODEL_WEIGHTS": "file:.", "GSHARE_WEIGHTS_ROOT": str(tmp_path)}
    for settings, expected in ((config | names, {"cat", "dog", "n03"}), (config, {"LABEL_0", "LABEL_1", "LABEL_2"})):
        (tmp_path / "config.json").write_text(json.dumps(settings))
        with served(RESNEXT, env) as client:
            found = client.post("/", data=(RESNEXT / "sample.jpg").read_bytes()).get_json()["predictions"]
        assert {one["label"] for one in found} == expected


@pytest.mark.parametrize(
    ("config", "env", "says"),
    [
        ({"architecture": "resnet50"}, {}, "the architecture is resnet50; a plain ResNeXt"),
        ({"architecture": "resnext50_32x4d", "model_args": {"stem_width": 32}}, {}, "{'stem_width': 32}; a plain"),
        ({"architecture": "resnext50_32x4d", "label_names": ["a"]}, {}, "1 label_names for 1000 num_classes"),
        ({"architecture": "resnext50_32x4d", "pretrained_cfg": {"crop_mode": "border"}}, {}, "$.pretrained_cfg.crop"),
        ({"depths": [1], "group": 3}, {}, "unknown field `group`"),
        ({"architecture": "resnext101_64x4d"}, {"MODEL_VARIANT": "101"}, "MODEL_VARIANT=101 has groups 32"),
        ({"architecture": "resnext101_32x8d"}, {}, "tensors are not in the file: layer3.6"),
        (None, {"MODEL_VARIANT": "26"}, "MODEL_VARIANT='26': there are 50, 101"),
        (None, {"MODEL_CONFIG": '{"depths": []}'}, "$.depths"),
        (None, {"MODEL_CONFIG": '{"groups": 0}'}, "$.groups"),
    ],
)
def test_what_cannot_be_loaded_is_the_reason_it_is_not_ready(
    published: tuple[Path, State], tmp_path: Path, config: dict[str, Any] | None, env: dict[str, str], says: str
) -> None:
    own = {"GSHARE_WEIGHTS_ROOT": str(tmp_path)}
    if config is not None:
        (tmp_path / "model.safetensors").hardlink_to(published[0] / "model.safetensors")
        (tmp_path / "config.json").write_text(json.dumps(config))
        own["MODEL_WEIGHTS"] = "file:."
    with loaded_app(RESNEXT, own | env) as (client, runtime):
        assert client.get("/_/ready").status_code == 503
        assert says in runtime.condition.reason


def test_random_weights_answer_the_sample_and_say_what_they_are(random: FlaskClient) -> None:
    answer = random.post("/?top_k=12", data=(RESNEXT / "sample.jpg").read_bytes()).get_json()

    assert sum(one["score"] for one in answer["predictions"]) == pytest.approx(1, abs=1e-5)
    assert (answer["model"], answer["weights"]) == ("resnext11_4x6d", "random:0")
