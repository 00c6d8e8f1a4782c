"""A checkpoint as NVIDIA's training leaves it, converted and served."""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from gshare.beam import BeamRules, beam_search
from gshare.convert import convert
from gshare.errors import WeightsError
from gshare.gnmt_checkpoint import CODES, ENTRIES

from functions.gnmt.model import BEGIN, END, Gnmt, GnmtConfig
from tests.served_app import FUNCTIONS, served

ENTRY_LIST = ["lo@@", "w", "a", "b"]
MARK_LIST = ["<pad>", "<unk>", "<s>", "<\\s>"]
CONFIG = GnmtConfig(vocab_size=10, hidden_size=8, num_layers=3)
Checkpoint = dict[str, Any]


@pytest.fixture
def model() -> Gnmt:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return Gnmt(CONFIG).eval()


@pytest.fixture
def tokenizer(monkeypatch: pytest.MonkeyPatch) -> Checkpoint:
    """Its state, with an object of a class that will not be there when the checkpoint is read."""
    bpe_class = type("BPE", (), {"__module__": "subword_nmt.apply_bpe"})
    package, module = ModuleType("subword_nmt"), ModuleType("subword_nmt.apply_bpe")
    module.BPE = bpe_class  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "subword_nmt", package)
    monkeypatch.setitem(sys.modules, "subword_nmt.apply_bpe", module)
    bpe = bpe_class()
    vars(bpe).update(version=(0, 2), separator="@@", cache={"low": ("lo@@", "w")}, glossaries_regex=None)
    vars(bpe)["bpe_codes"] = {("a", "b</w>"): 1, ("l", "o"): 0}
    numbers: defaultdict[str, int] = defaultdict(partial(int, 1))
    numbers.update({entry: number for number, entry in enumerate([*MARK_LIST, *ENTRY_LIST])})
    assert numbers["never seen"] == 1  # stays in the table, as it does in training
    return {"lang": {"src": "en", "tgt": "de"}, "separator": "@@", "vocab_size": 10, "bpe": bpe, "tok2idx": numbers}


def checkpoint_of(model: Gnmt, tokenizer: Checkpoint | None) -> Checkpoint:
    parameters = {f"module.{name}": tensor.half() for name, tensor in model.state_dict().items()}
    more = {"tokenizer": tokenizer} if tokenizer else {}
    facts = {"epoch": 5, "loss": np.float64(1.5), "config": argparse.Namespace(lr=0.1), "optimizer": {"state": {}}}
    return {"state_dict": parameters, "model_config": {"hidden_size": 8}, **facts, **more}


def save(checkpoint: Checkpoint, path: Path, *, zipped: bool = True) -> Path:
    torch.save(checkpoint, path, _use_new_zipfile_serialization=zipped)
    for name in ("subword_nmt", "subword_nmt.apply_bpe"):
        sys.modules.pop(name, None)
    return path


@pytest.mark.parametrize("zipped", [True, False], ids=["today's torch", "torch of 2018"])
def test_a_published_checkpoint_is_converted_with_its_vocabulary_and_served(
    tmp_path: Path, model: Gnmt, tokenizer: Checkpoint, zipped: bool
) -> None:
    path = save(checkpoint_of(model, tokenizer), tmp_path / "model_best.pth", zipped=zipped)

    convert("gnmt", path, tmp_path / "out")

    assert (tmp_path / "out" / CODES).read_text() == "#version: 0.2\nl o\na b</w>\n"
    assert (tmp_path / "out" / ENTRIES).read_text().split() == [*ENTRY_LIST, "<unused8>", "<unused9>"]
    with served(FUNCTIONS / "gnmt", {"MODEL_WEIGHTS": "file:out", "GSHARE_WEIGHTS_ROOT": str(tmp_path)}) as client:
        answer = client.post("/", json={"text": "low a"}).get_json()
    model.half().float()  # as the checkpoint keeps it
    with torch.inference_mode():
        translation = model.start([[BEGIN, 4, 5, 6, END]], 5)
        (expected,) = beam_search(translation, translation.source.mask, [16], rules=BeamRules(begin=BEGIN, end=END))
    assert answer["score"] == pytest.approx(expected.score, abs=1e-4)


def test_parameters_alone_are_converted_without_a_vocabulary(tmp_path: Path, model: Gnmt) -> None:
    path = save(dict(model.state_dict()), tmp_path / "state.pt")

    convert("gnmt", path, tmp_path / "out")

    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["config.json", "model.safetensors"]


def test_code_in_a_checkpoint_is_never_run(tmp_path: Path, model: Gnmt) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "sprung",))

    path = save({**checkpoint_of(model, None), "trap": Trap()}, tmp_path / "trap.pt")

    with pytest.raises(WeightsError, match="could run code"):
        convert("gnmt", path, tmp_path / "out")
    assert not (tmp_path / "sprung").exists()


def test_a_tokenizer_of_another_kind_is_refused_with_what_to_do(tmp_path: Path, model: Gnmt) -> None:
    path = save(checkpoint_of(model, {"vocabulary": ["a", "b"]}), tmp_path / "other.pt")

    with pytest.raises(WeightsError, match=r"tokenizer is not NVIDIA's \(KeyError: 'bpe'\); save its state_dict"):
        convert("gnmt", path, tmp_path / "out")


def test_a_checkpoint_without_a_part_of_the_model_is_refused_by_its_name(tmp_path: Path, model: Gnmt) -> None:
    parameters = dict(model.state_dict())
    del parameters["decoder.att_rnn.attn.linear_att"]

    with pytest.raises(WeightsError, match=r"decoder\.att_rnn\.attn\.linear_att"):
        convert("gnmt", save(parameters, tmp_path / "part.pt"), tmp_path / "out")
