from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
import torch
from gshare.config import ReplicaConfig
from gshare.errors import WeightsError
from gshare.weights import Weights, cache_folder, open_weights
from safetensors.torch import save_file
from torch import nn

CPU = torch.device("cpu")


@pytest.fixture
def config(tmp_path: Path) -> ReplicaConfig:
    root = tmp_path / "root"
    root.mkdir()
    return ReplicaConfig(weights_root=str(root), weights_cache=str(tmp_path / "cache"))


def opened(text: str, config: ReplicaConfig) -> Weights:
    return open_weights(text, config, hub_token=None)


def save_model(folder: Path, *, value: float = 1.0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text('{"hidden": 2}')
    save_file({"weight": torch.full((2, 2), value), "bias": torch.zeros(2)}, folder / "model.safetensors")


def linear() -> nn.Linear:
    return nn.Linear(2, 2)


def test_nothing_named_means_random_weights_of_seed_0(config: ReplicaConfig) -> None:
    weights = opened("", config)

    assert (weights.text, weights.is_random, weights.config()) == ("random:0", True, None)


def test_a_folder_under_the_root_is_read_with_its_config(config: ReplicaConfig) -> None:
    save_model(Path(config.weights_root) / "models" / "two")

    weights = opened("file:models/two", config)
    module = weights.build(linear, CPU)

    assert torch.equal(module.weight, torch.ones(2, 2))
    assert not module.training
    assert not module.weight.requires_grad
    assert weights.config() == {"hidden": 2}
    assert weights.file("vocab.txt") is None


def test_a_single_safetensors_file_is_read(config: ReplicaConfig) -> None:
    save_model(Path(config.weights_root), value=3.0)

    module = opened("file:model.safetensors", config).build(linear, CPU)

    assert torch.equal(module.weight, torch.full((2, 2), 3.0))


def test_an_absolute_path_inside_the_root_is_fine(config: ReplicaConfig) -> None:
    save_model(Path(config.weights_root) / "m")

    assert opened(f"file:{config.weights_root}/m", config).config() == {"hidden": 2}


def test_sharded_weights_are_read_through_their_index(config: ReplicaConfig) -> None:
    root = Path(config.weights_root)
    (root / "config.json").write_text("{}")
    save_file({"weight": torch.ones(2, 2)}, root / "model-00001-of-00002.safetensors")
    save_file({"bias": torch.ones(2)}, root / "model-00002-of-00002.safetensors")
    names = {"weight": "model-00001-of-00002.safetensors", "bias": "model-00002-of-00002.safetensors"}
    (root / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))

    module = opened("file:.", config).build(linear, CPU)

    assert torch.equal(module.bias, torch.ones(2))


@pytest.mark.parametrize("path", ["../outside", "link", "/"])
def test_a_path_that_leads_out_of_the_root_is_refused_symlinks_included(config: ReplicaConfig, path: str) -> None:
    root = Path(config.weights_root)
    save_model(root.parent / "outside")
    (root / "link").symlink_to(root.parent / "outside")

    with pytest.raises(WeightsError, match="leads out of GSHARE_WEIGHTS_ROOT"):
        opened(f"file:{path}", config)


def test_without_a_root_no_file_is_read() -> None:
    with pytest.raises(WeightsError, match="GSHARE_WEIGHTS_ROOT is not set"):
        opened("file:model", ReplicaConfig())


@pytest.mark.parametrize(
    ("files", "asked", "says"),
    [
        ([], "file:none", "no such file or folder"),
        (["pytorch_model.bin"], "file:.", r"needs model.safetensors or .*; found: pytorch_model.bin"),
        (["model.bin"], "file:model.bin", "not a .safetensors file"),
    ],
)
def test_weights_that_are_not_there_or_no_safetensors_are_refused(
    config: ReplicaConfig, files: list[str], asked: str, says: str
) -> None:
    for name in files:
        (Path(config.weights_root) / name).write_bytes(b"pickle")

    with pytest.raises(WeightsError, match=says):
        opened(asked, config)


@pytest.mark.parametrize("text", ["random:", "random:-1", "http://x", "file:", "hf:a/b/c"])
def test_a_source_of_another_form_is_refused_with_the_forms_there_are(config: ReplicaConfig, text: str) -> None:
    with pytest.raises(WeightsError, match="write hf:OWNER/REPO@REVISION"):
        opened(text, config)


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ("nonsense", "is not an index of safetensors"),
        ('{"weight_map": {"weight": "gone.safetensors"}}', "names files that are not there: gone"),
        ('{"weight_map": {"weight": "../../etc/passwd"}}', "names files that are not there"),
    ],
)
def test_a_broken_index_is_refused(config: ReplicaConfig, index: str, says: str) -> None:
    (Path(config.weights_root) / "model.safetensors.index.json").write_text(index)

    with pytest.raises(WeightsError, match=says):
        opened("file:.", config)


def test_real_weights_without_a_config_are_refused_by_functions_that_need_one(config: ReplicaConfig) -> None:
    save_file({"weight": torch.ones(1)}, Path(config.weights_root) / "model.safetensors")

    with pytest.raises(WeightsError, match=r"no config\.json beside the weights"):
        opened("file:.", config).config()


def test_a_truncated_file_is_refused_by_its_name(config: ReplicaConfig) -> None:
    save_model(Path(config.weights_root))
    file = Path(config.weights_root) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])

    with pytest.raises(WeightsError, match=r"file:\.: model\.safetensors cannot be read as safetensors"):
        opened("file:.", config).build(linear, CPU)


def test_the_digest_is_of_the_content_and_follows_a_change_of_it(config: ReplicaConfig) -> None:
    root = Path(config.weights_root)
    save_model(root / "a")
    save_model(root / "b")
    digests = []
    for folder in ("a", "b"):
        weights = opened(f"file:{folder}", config)
        assert weights.digest() == ""
        weights.build(linear, CPU)
        digests.append(weights.digest())
    save_model(root / "b", value=2.0)
    changed = opened("file:b", config)
    changed.build(linear, CPU)

    assert digests[0] == digests[1] != changed.digest()
    assert digests[0].startswith("sha256:")


def test_a_pinned_digest_lets_its_own_content_through_and_no_other(config: ReplicaConfig) -> None:
    folder = Path(config.weights_root) / "models" / "two"
    save_model(folder)
    unpinned = opened("file:models/two", config)
    unpinned.build(linear, CPU)
    pinned = f"file:models/two@{unpinned.digest()}"

    assert torch.equal(opened(pinned, config).build(linear, CPU).weight, torch.ones(2, 2))

    save_model(folder, value=2.0)
    with pytest.raises(WeightsError, match=r"its content is sha256:[0-9a-f]{64}, asked for is sha256:"):
        opened(pinned, config)


@pytest.mark.parametrize("pin", ["12", "x" * 64, "A" * 64])
def test_a_pin_that_is_no_digest_is_refused(config: ReplicaConfig, pin: str) -> None:
    save_model(Path(config.weights_root) / "m")
    with pytest.raises(WeightsError, match="a digest has 64 digits"):
        opened(f"file:m@sha256:{pin}", config)


def test_a_digest_is_computed_once_for_an_unchanged_file(config: ReplicaConfig) -> None:
    save_model(Path(config.weights_root))
    weights = opened("file:.", config)
    weights.build(linear, CPU)
    first = weights.digest()
    (remembered,) = (Path(config.weights_cache) / "digests").iterdir()
    remembered.write_text("as remembered")

    assert first != weights.digest() == "sha256:as remembered"


def test_the_cache_under_the_temporary_folder_is_this_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))

    folder = cache_folder(ReplicaConfig())

    assert folder == tmp_path / f"gshare-weights-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_link_in_the_place_of_the_cache_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    (tmp_path / "theirs").mkdir()
    (tmp_path / f"gshare-weights-{os.getuid()}").symlink_to(tmp_path / "theirs")

    with pytest.raises(WeightsError, match="belongs to somebody else"):
        cache_folder(ReplicaConfig())
