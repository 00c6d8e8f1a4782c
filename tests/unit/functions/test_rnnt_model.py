"""The RNN-T itself: decoding against a step-by-step reference, batches of mixed length, seeded weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from functions.rnnt.alphabet import BLANK, SYMBOLS, text_of
from functions.rnnt.features import FEATURES, LogMel
from functions.rnnt.greedy import MAX_SYMBOLS_PER_STEP, transcribe
from functions.rnnt.model import Rnnt, RnntConfig
from functions.rnnt.untrained import untrained
from tests.sounds import noise, tone
from tests.tiny_rnnt import transducer_loss

SMALL = RnntConfig(encoder_hidden=32, prediction_hidden=24, joint_hidden=48)
LENGTHS = [1, 2, 3, 7, 12, 13]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """So small models only lose by more."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model_of(seed: int, *, blank: float = 0.0, spread: float = 30.0) -> Rnnt:
    """Random weights whose scores depend on what is heard, with `blank` added to the blank's."""
    torch.manual_seed(seed)
    model = Rnnt(SMALL).eval().requires_grad_(False)
    model.joint.first.weight *= spread
    model.joint.last.bias[BLANK] += blank
    return model


def utterances(seed: int, lengths: list[int] = LENGTHS) -> list[torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    return [torch.randn(length, FEATURES, generator=source) for length in lengths]


def together(model: Rnnt, features: list[torch.Tensor]) -> list[list[int]]:
    return transcribe(model, pad_sequence(features, batch_first=True), torch.tensor([len(rows) for rows in features]))


class Reference:
    """One utterance, one step, one symbol at a time, straight from the definition and the published parameter names."""

    def __init__(self, model: Rnnt) -> None:
        self.parameters = model.state_dict()
        self.pre = self._lstm("encoder.pre_rnn.lstm", SMALL.encoder_pre_layers)
        self.post = self._lstm("encoder.post_rnn.lstm", SMALL.encoder_post_layers)
        self.decoder = self._lstm("prediction.dec_rnn.lstm", SMALL.prediction_layers)

    def transcribe(self, features: torch.Tensor) -> list[int]:
        frames, _ = self.pre(features)
        frames = torch.cat([frames, torch.zeros(len(frames) % 2, frames.shape[1])])
        heard, _ = self.post(torch.cat([frames[0::2], frames[1::2]], dim=1))
        symbols: list[int] = []
        predicted, state = self.decoder(torch.zeros(1, SMALL.prediction_hidden))
        for step in heard:
            for _ in range(MAX_SYMBOLS_PER_STEP):
                best = self._best(step, predicted[0])
                if best == BLANK:
                    break
                symbols.append(best)
                predicted, state = self.decoder(self.parameters["prediction.embed.weight"][[best]], state)
        return symbols

    def _best(self, step: torch.Tensor, predicted: torch.Tensor) -> int:
        inner = (
            self.parameters["joint.net.0.weight"] @ torch.cat([step, predicted]) + self.parameters["joint.net.0.bias"]
        )
        scores = self.parameters["joint.net.3.weight"] @ inner.relu() + self.parameters["joint.net.3.bias"]
        return int(scores.argmax())

    def _lstm(self, name: str, layers: int) -> torch.nn.LSTM:
        hidden = self.parameters[f"{name}.weight_hh_l0"].shape[1]
        lstm = torch.nn.LSTM(self.parameters[f"{name}.weight_ih_l0"].shape[1], hidden, layers)
        lstm.load_state_dict({key: self.parameters[f"{name}.{key}"] for key in lstm.state_dict()})
        return lstm


@torch.inference_mode()
@pytest.mark.parametrize(("seed", "blank"), [(0, 0.2), (1, 0.5), (2, 1.0), (3, -9.0)])
def test_decoding_a_batch_of_mixed_length_equals_decoding_each_step_by_step(seed: int, blank: float) -> None:
    model, features = model_of(seed, blank=blank), utterances(seed)

    found = together(model, features)

    reference = Reference(model)
    assert found == [reference.transcribe(rows) for rows in features]
    assert any(found)


@torch.inference_mode()
def test_without_a_blank_each_step_writes_30_symbols_and_no_more() -> None:
    found = together(model_of(0, blank=-1e9), utterances(0))

    assert [len(symbols) for symbols in found] == [30 * ((length + 1) // 2) for length in LENGTHS]


@torch.inference_mode()
def test_what_is_heard_in_a_batch_equals_what_is_heard_alone() -> None:
    model, features = model_of(0), utterances(0)

    lengths = torch.tensor(LENGTHS)
    padded, steps = model.encoder(pad_sequence(features, batch_first=True, padding_value=9.0), lengths)

    assert steps.tolist() == [(length + 1) // 2 for length in LENGTHS]
    for row, count, alone in zip(padded, steps.tolist(), features, strict=True):
        expected, _ = model.encoder(alone[None], torch.tensor([len(alone)]))
        torch.testing.assert_close(row[:count], expected[0], atol=1e-5, rtol=1e-4)


def test_the_default_is_the_published_size_under_the_published_names() -> None:
    with torch.device("meta"):
        shapes = {name: tuple(tensor.shape) for name, tensor in Rnnt(RnntConfig()).state_dict().items()}

    assert sum(torch.Size(shape).numel() for shape in shapes.values()) == 45_323_037
    assert shapes["encoder.pre_rnn.lstm.weight_ih_l0"] == (4096, 240)
    assert shapes["encoder.post_rnn.lstm.weight_ih_l0"] == (4096, 2048)
    assert shapes["prediction.embed.weight"] == (28, 320)
    assert shapes["joint.net.0.weight"] == (512, 1344)
    assert shapes["joint.net.3.weight"] == (29, 512)


def test_text_is_spelled_with_28_symbols() -> None:
    assert (len(SYMBOLS), BLANK) == (28, 28)
    assert text_of([0, 8, 5, 12, 12, 15, 0, 27, 14, 0]) == "hello 'n"


@torch.inference_mode()
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("config", [SMALL, RnntConfig(encoder_hidden=128)], ids=["small", "wider"])
def test_random_weights_write_about_a_symbol_in_three_steps_and_never_run_away(config: RnntConfig, seed: int) -> None:
    torch.manual_seed(seed)
    model, hear = untrained(config).eval(), LogMel(torch.device("cpu"))
    sounds = [noise(6.0, seed=9), noise(6.0, seed=10), tone(440, 6.0), tone(100, 6.0) + noise(6.0) * 0.01]
    features = [hear(torch.from_numpy(sound).float()) for sound in sounds]

    found = together(model, features)

    steps = [(len(rows) + 1) // 2 for rows in features]
    assert all(0.1 * count <= len(symbols) <= 0.6 * count for symbols, count in zip(found[:2], steps[:2], strict=True))
    assert all(len(symbols) <= 1.1 * count for symbols, count in zip(found, steps, strict=True))
    assert found[0] != found[1]


def test_same_seed_same_weights() -> None:
    states = []
    for _ in range(2):
        torch.manual_seed(5)
        states.append(untrained(SMALL).state_dict())

    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


def test_the_loss_that_the_tiny_model_learns_by_sums_over_all_alignments() -> None:
    torch.manual_seed(0)
    scores, text = torch.randn(1, 4, 3, BLANK + 1), [5, 7]
    logs = scores[0].log_softmax(-1)

    total = torch.zeros(())
    for places in itertools.combinations_with_replacement(range(4), 2):
        likelihood, written = torch.zeros(()), 0
        for step in range(4):
            while written < 2 and places[written] == step:
                likelihood += logs[step, written, text[written]]
                written += 1
            likelihood += logs[step, written, BLANK]
        total += likelihood.exp()

    padded = torch.tensor([[*text, BLANK]])
    wider = torch.nn.functional.pad(scores, (0, 0, 0, 1))
    torch.testing.assert_close(transducer_loss(wider, padded, torch.tensor([4]))[0], -total.log())
