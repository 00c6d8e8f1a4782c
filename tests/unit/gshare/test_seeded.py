from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from gshare.errors import WeightsError
from gshare.modules import empty_module
from gshare.seeded import seeded_file
from safetensors.torch import load_file
from torch import nn


def two_layers(*, dropout: float = 0.0) -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.Dropout(dropout), nn.Linear(4, 2))


def file_of(cache: Path, *, seed: int = 0, dropout: float = 0.0) -> Path:
    def factory() -> nn.Sequential:
        return two_layers(dropout=dropout)

    return seeded_file(empty_module(factory), factory, seed=seed, cache=cache)


def test_the_same_seed_and_architecture_give_the_same_bytes_everywhere(tmp_path: Path) -> None:
    caches = [tmp_path / name for name in ("one", "two")]
    for cache in caches:
        cache.mkdir()
    one, two = (file_of(cache, seed=7) for cache in caches)

    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()


def test_another_seed_or_another_architecture_is_another_file(tmp_path: Path) -> None:
    files = {file_of(tmp_path), file_of(tmp_path, seed=1), file_of(tmp_path, dropout=0.5)}

    assert len(files) == 3
    assert not torch.equal(load_file(file_of(tmp_path))["0.weight"], load_file(file_of(tmp_path, seed=1))["0.weight"])


def test_the_values_are_those_that_the_module_initialises_itself_with(tmp_path: Path) -> None:
    written = load_file(file_of(tmp_path, seed=3))
    torch.manual_seed(3)

    assert torch.equal(written["0.weight"], two_layers().state_dict()["0.weight"])


def test_it_is_written_once_however_many_come_at_once(tmp_path: Path) -> None:
    made: list[int] = []

    def factory() -> nn.Sequential:
        made.append(1)
        return two_layers()

    empty = empty_module(two_layers)
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(lambda _: seeded_file(empty, factory, seed=0, cache=tmp_path), range(8)))

    assert len(set(files)) == 1
    assert len(made) == 1
    assert not list(tmp_path.glob("*.tmp"))


def test_an_existing_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = file_of(tmp_path)
    before = path.stat()

    assert file_of(tmp_path).stat() == before


def test_the_process_own_random_state_is_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    file_of(tmp_path)

    assert torch.equal(torch.rand(3), expected)


def test_a_cache_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=f"{tmp_path}/gone.* cannot be written"):
        file_of(tmp_path / "gone")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("gshare.seeded.save_file", full)

    with pytest.raises(WeightsError, match="No space left on device"):
        file_of(tmp_path)
    assert not list(tmp_path.glob("*.safetensors*"))


def test_tied_parameters_are_written_once(tmp_path: Path) -> None:
    def tied() -> nn.Sequential:
        model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
        model[1].weight = model[0].weight
        return model

    written = load_file(seeded_file(empty_module(tied), tied, seed=0, cache=tmp_path))

    assert set(written) == {"0.weight", "0.bias", "1.bias"}
