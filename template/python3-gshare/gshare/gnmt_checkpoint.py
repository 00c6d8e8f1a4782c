"""What NVIDIA's GNMT training keeps in a checkpoint beside the parameters: above all the vocabulary.

It lies there as objects of classes that are not installed here, and should not be run. Each becomes a stand-in that
only holds data, so that the checkpoint can be read with `weights_only` and the vocabulary taken out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gshare.errors import WeightsError

CODES = "bpe.32000"
ENTRIES = "vocab.bpe.32000"
"""Files beside the weights, under the names that NVIDIA's preparation of WMT16 gives them: merges, and vocabulary."""
CODES_VERSION = "#version: 0.2"
"""First line of the merges, as subword-nmt writes them."""
MARKS = 4
"""Entries before those of the vocabulary file: padding, unknown, begin, end."""


class StandIn(dict[Any, Any]):
    """Takes the place of an object: what it was made with is dropped, its attributes become items, no code is run."""

    def __new__(cls, *_arguments: object) -> StandIn:
        return super().__new__(cls)

    def __init__(self, *_arguments: object) -> None:
        super().__init__()

    def __setstate__(self, state: object) -> None:
        if isinstance(state, Mapping):
            self.update(state)


def _table(*_arguments: object) -> dict[Any, Any]:
    """In the place of a dict that makes its own entries; torch fills plain ones only."""
    return {}


STAND_INS: list[Callable[..., Any] | tuple[Callable[..., Any], str]] = [
    (_table, "collections.defaultdict"),
    (StandIn, "argparse.Namespace"),
    (StandIn, "builtins.int"),
    (StandIn, "functools.partial"),
    (StandIn, "numpy._core.multiarray.scalar"),
    (StandIn, "numpy.core.multiarray.scalar"),
    (StandIn, "numpy.dtype"),
    (StandIn, "subword_nmt.apply_bpe.BPE"),
]
"""For `torch.serialization.safe_globals`: what these checkpoints are known to hold besides tensors."""


def vocabulary_files(loaded: object) -> dict[str, str]:
    """Names and contents of the vocabulary's files; none if the checkpoint has no tokenizer in it.

    Raises:
        WeightsError: a tokenizer of another kind.
    """
    tokenizer = loaded.get("tokenizer") if isinstance(loaded, Mapping) else None
    if tokenizer is None:
        return {}
    try:
        return {CODES: _codes(tokenizer["bpe"]), ENTRIES: _entries(tokenizer["tok2idx"], tokenizer["vocab_size"])}
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise WeightsError(
            f"the checkpoint's tokenizer is not NVIDIA's ({type(error).__name__}: {error}); "
            f"save its state_dict alone and lay {CODES} and {ENTRIES} beside the weights yourself"
        ) from error


def _codes(bpe: Mapping[str, Any]) -> str:
    ranks: Mapping[tuple[str, str], int] = bpe["bpe_codes"]
    pairs = [f"{left} {right}" for left, right in sorted(ranks, key=lambda pair: ranks[pair])]
    return "\n".join([CODES_VERSION, *pairs]) + "\n"


def _entries(numbers: Mapping[str, int], size: int) -> str:
    """One entry a line, by number. Words that training looked up in vain stand in the table as well, as unknown."""
    by_number = {number: entry for entry, number in numbers.items() if number >= MARKS}
    return "\n".join(by_number.get(number, f"<unused{number}>") for number in range(MARKS, size)) + "\n"
