from __future__ import annotations

from pathlib import Path

import pytest
import torch
from gshare.errors import WeightsError
from gshare.modules import empty_module, fill_module
from safetensors.torch import save_file
from torch import nn


class Net(nn.Module):
    """Everything that loading has to get right: ties, saved and unsaved buffers, a normalisation layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(5, 3)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("positions", torch.arange(4) * 2, persistent=False)
        self.register_buffer("scale", torch.ones(1))
        self.positions: torch.Tensor


def saved(path: Path, **changes: torch.Tensor | None) -> Path:
    """Net's own state, its tie once, with some tensors replaced or (None) left out; `.` is written `__`."""
    tensors = {k: v.clone() for k, v in Net().state_dict().items() if k != "head.weight"}
    for name, tensor in changes.items():
        tensors.pop(name.replace("__", "."))
        if tensor is not None:
            tensors[name.replace("__", ".")] = tensor
    save_file(tensors, path / "net.safetensors")
    return path / "net.safetensors"


def loaded(*shards: Path) -> Net:
    net = empty_module(Net)
    fill_module(net, Net, shards=shards)
    return net


def test_an_empty_module_takes_no_memory() -> None:
    assert all(tensor.is_meta for tensor in (*empty_module(Net).parameters(), *empty_module(Net).buffers()))


def test_every_tensor_of_the_file_is_in_the_module_and_nothing_is_left_empty(tmp_path: Path) -> None:
    weight = torch.randn(5, 3)

    net = loaded(saved(tmp_path, embed__weight=weight))

    assert torch.equal(net.embed.weight, weight)
    assert not any(tensor.is_meta for tensor in (*net.parameters(), *net.buffers()))


def test_tied_parameters_stay_one_object_though_the_file_has_one_name_for_them(tmp_path: Path) -> None:
    net = loaded(saved(tmp_path))

    assert net.head.weight is net.embed.weight


def test_buffers_that_are_not_saved_are_computed_as_the_module_does(tmp_path: Path) -> None:
    assert loaded(saved(tmp_path)).positions.tolist() == [0, 2, 4, 6]


def test_the_tensors_are_the_files_own_pages(tmp_path: Path) -> None:
    path = saved(tmp_path)
    net = loaded(path)
    with Path("/proc/self/maps").open() as maps:
        mapped = [line.split()[0].split("-") for line in maps if str(path) in line]
    address = net.embed.weight.data_ptr()

    assert any(int(low, 16) <= address < int(high, 16) for low, high in mapped)


def test_a_file_without_training_statistics_is_complete(tmp_path: Path) -> None:
    assert loaded(saved(tmp_path, norm__num_batches_tracked=None)).norm.num_batches_tracked == 0


def test_old_names_of_normalisation_parameters_are_understood(tmp_path: Path) -> None:
    save_file({"norm.gamma": torch.full((3,), 2.0), "norm.beta": torch.ones(3)}, tmp_path / "old.safetensors")
    rest = saved(tmp_path, norm__weight=None, norm__bias=None)

    net = loaded(rest, tmp_path / "old.safetensors")

    assert net.norm.weight.tolist() == [2.0] * 3
    assert net.norm.bias.tolist() == [1.0] * 3


def test_names_can_be_translated(tmp_path: Path) -> None:
    save_file({"model.w": torch.ones(1, 1)}, tmp_path / "m.safetensors")
    linear = empty_module(lambda: nn.Linear(1, 1, bias=False))

    fill_module(
        linear, lambda: nn.Linear(1, 1, bias=False), shards=[tmp_path / "m.safetensors"], rename=lambda _: "weight"
    )

    assert linear.weight.item() == 1.0


def test_half_precision_in_the_file_becomes_what_the_module_computes_in(tmp_path: Path) -> None:
    net = loaded(saved(tmp_path, embed__weight=torch.ones(5, 3, dtype=torch.float16)))

    assert net.embed.weight.dtype is torch.float32


def test_missing_tensors_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"2 of \d+ tensors are not in the file: embed.weight; head.weight"):
        loaded(saved(tmp_path, embed__weight=None))


def test_tensors_of_another_shape_are_refused_with_both_shapes(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"embed.weight is \(6, 3\), the model has \(5, 3\)"):
        loaded(saved(tmp_path, embed__weight=torch.ones(6, 3)))


def test_a_file_that_is_no_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "bad.safetensors").write_bytes(b"PK\x03\x04 a pickle in disguise")

    with pytest.raises(WeightsError, match=r"bad\.safetensors cannot be read as safetensors"):
        loaded(tmp_path / "bad.safetensors")


def test_loading_leaves_the_random_state_of_the_process_alone(tmp_path: Path) -> None:
    path = saved(tmp_path)
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    loaded(path)

    assert torch.equal(torch.rand(3), expected)
