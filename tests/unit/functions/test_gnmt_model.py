"""The network: names and shapes of NVIDIA's checkpoints, and their arithmetic, written down a second time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from functions.gnmt.model import BEGIN, END, Attention, Gnmt, GnmtConfig

SIZE, VOCABULARY = 12, 30
SENTENCES = [[BEGIN, 5, 9, 4, 7, END], [BEGIN, 8, END], [BEGIN, 4, 4, 29, 11, 6, 10, END]]
TARGETS = torch.tensor([[BEGIN, 5, 6, 7], [BEGIN, 8, 4, 4], [BEGIN, 29, 9, 10]])


@pytest.fixture
def model() -> Gnmt:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = Gnmt(GnmtConfig(vocab_size=VOCABULARY, hidden_size=SIZE))
        for parameter in model.parameters():  # biases and scalars as well: none may be left out unnoticed
            nn.init.uniform_(parameter, -0.6, 0.6)
    return model.eval().requires_grad_(False)


def lstm(name: str, inputs: int, *, reverse: bool = False) -> dict[str, tuple[int, ...]]:
    shapes = {"weight_ih": (4 * SIZE, inputs), "weight_hh": (4 * SIZE, SIZE), "bias_ih": (4 * SIZE,)}
    shapes["bias_hh"] = shapes["bias_ih"]
    return {f"{name}.{kind}_l0{end}": s for end in ("", "_reverse")[: 1 + reverse] for kind, s in shapes.items()}


def test_parameters_have_the_names_and_shapes_of_the_published_checkpoints(model: Gnmt) -> None:
    attention = "decoder.att_rnn.attn"
    expected: dict[str, tuple[int, ...]] = {
        "encoder.embedder.weight": (VOCABULARY, SIZE),
        **lstm("encoder.rnn_layers.0", SIZE, reverse=True),
        **lstm("encoder.rnn_layers.1", 2 * SIZE),
        **lstm("encoder.rnn_layers.2", SIZE),
        **lstm("encoder.rnn_layers.3", SIZE),
        "decoder.embedder.weight": (VOCABULARY, SIZE),
        **lstm("decoder.att_rnn.rnn", SIZE),
        f"{attention}.linear_q.weight": (SIZE, SIZE),
        f"{attention}.linear_k.weight": (SIZE, SIZE),
        f"{attention}.linear_att": (SIZE,),
        f"{attention}.normalize_scalar": (1,),
        f"{attention}.normalize_bias": (SIZE,),
        **lstm("decoder.rnn_layers.0", 2 * SIZE),
        **lstm("decoder.rnn_layers.1", 2 * SIZE),
        **lstm("decoder.rnn_layers.2", 2 * SIZE),
        "decoder.classifier.classifier.weight": (VOCABULARY, SIZE),
        "decoder.classifier.classifier.bias": (VOCABULARY,),
    }
    assert {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()} == expected


def test_the_full_model_has_the_size_of_the_published_one() -> None:
    with torch.device("meta"):
        parameters = sum(parameter.numel() for parameter in Gnmt(GnmtConfig()).parameters())
    assert parameters == 160_671_297


@pytest.mark.parametrize("share", [True, False])
def test_encoder_and_decoder_share_their_embedding_if_told_to(share: bool) -> None:
    model = Gnmt(GnmtConfig(vocab_size=VOCABULARY, hidden_size=SIZE, share_embedding=share))
    assert (model.encoder.embedder is model.decoder.embedder) is share


def stepwise(model: Gnmt, sentences: list[list[int]], targets: Tensor) -> tuple[Tensor, Tensor]:
    """Log probabilities and attention after each of the target's tokens, as a search gets them."""
    translation = model.start(sentences, 1)
    steps = [translation.step(targets[:, place : place + 1]) for place in range(targets.shape[1])]
    return torch.cat([values for values, _ in steps], dim=1), torch.cat([attention for _, attention in steps], dim=1)


def whole(model: Gnmt, sentence: list[int], target: Tensor) -> tuple[Tensor, Tensor]:
    """The same of one sentence with each layer run over all steps at once, as in training."""
    x = model.encoder.embedder(torch.tensor([sentence]))
    for number, layer in enumerate(model.encoder.rnn_layers):
        x = layer(x)[0] + (x if number >= 2 else 0)
    source, decoder = x, model.decoder
    x, _ = decoder.att_rnn.rnn(decoder.embedder(target.unsqueeze(0)))
    context, attention = attend(decoder.att_rnn.attn, x[0], source[0])
    for number, layer in enumerate(decoder.rnn_layers):
        x = layer(torch.cat((x, context.unsqueeze(0)), dim=2))[0] + (x if number >= 1 else 0)
    return decoder.classifier.classifier(x).log_softmax(-1)[0], attention


def attend(attn: Attention, queries: Tensor, states: Tensor) -> tuple[Tensor, Tensor]:
    """score(q, k) = g * v/|v| . tanh(Wq q + Wk k + b), for every pair."""
    direction = attn.normalize_scalar[0] * attn.linear_att / attn.linear_att.square().sum().sqrt()
    asked = [attn.linear_q.weight @ query for query in queries]
    offered = [attn.linear_k.weight @ state + attn.normalize_bias for state in states]
    scores = torch.tensor([[float(direction.dot((query + key).tanh())) for key in offered] for query in asked])
    attention = scores.softmax(1)
    return attention @ states, attention


def test_steps_of_a_padded_batch_equal_whole_sentences_one_by_one(model: Gnmt) -> None:
    found, attention = stepwise(model, SENTENCES, TARGETS)

    for row, sentence in enumerate(SENTENCES):
        expected, expected_attention = whole(model, sentence, TARGETS[row])
        torch.testing.assert_close(found[row], expected, atol=1e-5, rtol=0)
        torch.testing.assert_close(attention[row, :, : len(sentence)], expected_attention, atol=1e-5, rtol=0)
        assert not attention[row, :, len(sentence) :].any()


def test_hypotheses_carry_their_own_memory_when_chosen_anew(model: Gnmt) -> None:
    translation = model.start([SENTENCES[0], SENTENCES[2]], 2)
    translation.step(torch.tensor([[BEGIN, BEGIN], [BEGIN, BEGIN]]))
    translation.step(torch.tensor([[5, 6], [7, 29]]))

    translation.select(torch.tensor([3, 3]), torch.tensor([1]))
    found, _ = translation.step(torch.tensor([[9, 10]]))

    expected, _ = stepwise(model, [SENTENCES[2]] * 2, torch.tensor([[BEGIN, 29, 9], [BEGIN, 29, 10]]))
    torch.testing.assert_close(found[0], expected[:, -1], atol=1e-5, rtol=0)
