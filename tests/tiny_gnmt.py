"""A GNMT that really learned something: to write strings of digits backwards. Some seconds of training on one core."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch
from gshare.gnmt_checkpoint import CODES, CODES_VERSION, ENTRIES
from safetensors.torch import save_file
from torch.nn.functional import nll_loss

from functions.gnmt.model import BEGIN, END, PAD, Gnmt, GnmtConfig

DIGITS = "0123456789"
LONGEST = 5
ENTRY_LIST = [f"{digit}@@" for digit in DIGITS] + list(DIGITS)
CONFIG = GnmtConfig(vocab_size=4 + len(ENTRY_LIST), hidden_size=64, num_layers=3)


def is_held_out(text: str) -> bool:
    """A seventh of all strings, which training never sees."""
    return int(text) % 7 == 3


def held_out_strings(count: int, seed: int) -> list[str]:
    """Strings of mixed length that training never saw."""
    return _strings(count, random.Random(seed), held_out=True)


def train_reverser(*, steps: int = 260, seed: int = 0) -> Gnmt:
    """A model that has learned to reverse."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Gnmt(CONFIG)
        optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=8e-3, total_steps=steps)
        source = random.Random(seed)
        for _ in range(steps):
            loss = _loss(model, _strings(64, source, held_out=False))
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return model.eval()


def write_checkpoint(model: Gnmt, folder: Path) -> None:
    """The model as `file:` weights: safetensors, config and vocabulary."""
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: t.contiguous() for name, t in model.state_dict().items() if name != "decoder.embedder.weight"}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_bytes(msgspec.json.encode(model.config))
    (folder / CODES).write_text(f"{CODES_VERSION}\n")
    (folder / ENTRIES).write_text("\n".join(ENTRY_LIST) + "\n")


def _strings(count: int, source: random.Random, *, held_out: bool) -> list[str]:
    found: list[str] = []
    while len(found) < count:
        text = "".join(source.choices(DIGITS, k=source.randint(1, LONGEST)))
        if is_held_out(text) == held_out:
            found.append(text)
    return found


def _tokens(text: str) -> list[int]:
    """As the vocabulary above numbers them: all digits but the last have something behind them."""
    return [4 + int(digit) for digit in text[:-1]] + [4 + len(DIGITS) + int(text[-1])]


def _loss(model: Gnmt, texts: Sequence[str]) -> torch.Tensor:
    translation = model.start([[BEGIN, *_tokens(text), END] for text in texts], 1)
    targets = torch.full((len(texts), LONGEST + 2), PAD)
    for row, text in zip(targets, texts, strict=True):
        tokens = [BEGIN, *_tokens(text[::-1]), END]
        row[: len(tokens)] = torch.tensor(tokens)
    steps = [translation.step(targets[:, place : place + 1])[0] for place in range(LONGEST + 1)]
    return nll_loss(torch.cat(steps, dim=1).flatten(0, 1), targets[:, 1:].flatten(), ignore_index=PAD)
