"""Published torch checkpoints become safetensors that a function loads; what does not fit is named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import torch
from gshare.convert import convert, main
from gshare.errors import WeightsError
from safetensors.torch import load_file

from functions.rnnt.model import Rnnt, RnntConfig

SMALL = RnntConfig(encoder_hidden=6, encoder_pre_layers=3, stack=3, prediction_hidden=4, joint_hidden=5)


def published(prefix: str = "") -> dict[str, torch.Tensor]:
    """Parameters under MLPerf's names, with what its training program keeps besides."""
    torch.manual_seed(0)
    own = {name.replace("joint.net", "joint_net"): tensor for name, tensor in Rnnt(SMALL).state_dict().items()}
    extra = {"audio_preprocessor.featurizer.fb": torch.ones(1, 80, 257)}
    return {prefix + name: tensor for name, tensor in (own | extra).items()}


@pytest.mark.parametrize("prefix", ["", "module.", "module.model."])
@pytest.mark.parametrize("container", ["", "state_dict", "model"])
def test_a_published_rnnt_is_loaded_by_the_function_as_it_was(tmp_path: Path, prefix: str, container: str) -> None:
    parameters = published(prefix)
    checkpoint = {container: parameters, "epoch": 3, "optimizer": {"state": {}}} if container else parameters
    torch.save(checkpoint, tmp_path / "rnnt.pt")

    convert("rnnt", tmp_path / "rnnt.pt", tmp_path / "out")

    config = RnntConfig(**json.loads((tmp_path / "out" / "config.json").read_text()))
    assert config == SMALL
    model = Rnnt(config)
    model.load_state_dict(load_file(tmp_path / "out" / "model.safetensors"), strict=True)
    torch.testing.assert_close(model.joint.first.weight, parameters[f"{prefix}joint_net.0.weight"], atol=0, rtol=0)


def test_halves_and_views_become_whole_tensors_and_an_undropped_joint_its_usual_name(tmp_path: Path) -> None:
    parameters = {name.replace("joint_net.3", "joint_net.2"): tensor.half() for name, tensor in published().items()}
    parameters["prediction.embed.weight"] = torch.ones(4, 28, dtype=torch.float16).T
    torch.save(parameters, tmp_path / "rnnt.pt")

    convert("rnnt", tmp_path / "rnnt.pt", tmp_path / "out")

    found = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype for tensor in found.values()} == {torch.float32}
    assert found.keys() == Rnnt(SMALL).state_dict().keys()


def test_code_in_a_checkpoint_is_never_run(tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self) -> tuple[object, ...]:
            return (Path.touch, (tmp_path / "owned",))

    torch.save({"state_dict": published(), "config": Evil()}, tmp_path / "evil.pt")
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Evil(), protocol=2))

    for name in ("evil.pt", "plain.pt"):
        with pytest.raises(WeightsError, match="holds more than tensors and plain values, which could run code"):
            convert("rnnt", tmp_path / name, tmp_path / "out")

    assert not (tmp_path / "owned").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"prediction.embed.weight": None}, "has no prediction.embed.weight"),
        ({"encoder.post_rnn.lstm.bias_hh_l2": None}, "1 parameters are missing: encoder.post_rnn.lstm.bias_hh_l2"),
        ({"decoder.extra": torch.ones(1)}, "1 parameters are unknown: decoder.extra"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, change: dict[str, torch.Tensor | None], says: str) -> None:
    changed = published() | change
    torch.save({name: tensor for name, tensor in changed.items() if tensor is not None}, tmp_path / "rnnt.pt")

    with pytest.raises(WeightsError, match=says):
        convert("rnnt", tmp_path / "rnnt.pt", tmp_path / "out")


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04broken"])
def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rnnt.pt").write_bytes(content)

    with pytest.raises(WeightsError, match=r"rnnt\.pt"):
        convert("rnnt", tmp_path / "rnnt.pt", tmp_path / "out")


def test_a_checkpoint_without_tensors_is_refused(tmp_path: Path) -> None:
    torch.save([1, 2], tmp_path / "rnnt.pt")

    with pytest.raises(WeightsError, match="has no tensors"):
        convert("rnnt", tmp_path / "rnnt.pt", tmp_path / "out")


def test_the_command_says_what_it_wrote_and_never_overwrites(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(published(), tmp_path / "rnnt.pt")
    arguments = ["rnnt", str(tmp_path / "rnnt.pt"), str(tmp_path / "out")]

    main(arguments)
    assert "parameters for rnnt" in capsys.readouterr().out

    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert "is there already; remove it, or give another folder" in str(ended.value.code)


def test_a_missing_file_and_an_unknown_function_are_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rnnt", str(tmp_path / "none.pt"), str(tmp_path / "out")])
    assert "none.pt cannot be read as a torch file" in str(ended.value.code)

    with pytest.raises(SystemExit):
        main(["resnet50", "a.pt", "out"])
    assert "choose from" in capsys.readouterr().err
