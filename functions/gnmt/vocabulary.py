"""Text to numbers and back: words in pieces, as published checkpoints have them, or plain characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from gshare.errors import WeightsError
from gshare.gnmt_checkpoint import CODES, CODES_VERSION, ENTRIES, MARKS
from gshare.weights import Weights
from tokenizers import Tokenizer
from tokenizers.models import BPE

from .model import BEGIN, END, PAD, UNKNOWN, GnmtConfig

_END_OF_WORD = "</w>"
_MORE_FOLLOWS = "@@"
_UNKNOWN_TEXT = "<unk>"


class Vocabulary(Protocol):
    """Both directions, without the marks of begin and end."""

    def encode(self, text: str, /) -> list[int]:
        """Tokens of a sentence; what the vocabulary lacks is UNKNOWN."""

    def decode(self, tokens: Iterable[int], /) -> str:
        """The sentence of these tokens; marks are left out."""


class CharacterVocabulary:
    """For `random:` weights: every token is a character, from the space on as far as the vocabulary goes."""

    _first = ord(" ")
    _no_characters = 0xD800
    """Where the surrogates begin; nothing from here on is used."""

    def __init__(self, size: int) -> None:
        self._end = min(self._first + size - MARKS, self._no_characters)

    def encode(self, text: str) -> list[int]:
        codes = map(ord, text)
        return [c - self._first + MARKS if self._first <= c < self._end else UNKNOWN for c in codes]

    def decode(self, tokens: Iterable[int]) -> str:
        return "".join(self._character(token) for token in tokens if token not in (PAD, BEGIN, END))

    def _character(self, token: int) -> str:
        code = token - MARKS + self._first
        return chr(code) if self._first <= code < self._end else "\N{REPLACEMENT CHARACTER}"


class PieceVocabulary:
    """Moses' words, cut into pieces by the merges of subword-nmt, and a file that numbers the pieces."""

    def __init__(
        self, merges: Sequence[tuple[str, str]], entries: Sequence[str], *, languages: tuple[str, str]
    ) -> None:
        """`languages`: of the source and of the target. Raises: WeightsError if sacremoses is not installed."""
        self._entries = entries
        numbers = {entry: number for number, entry in enumerate(entries, start=MARKS)}
        pieces = _pieces(merges, entries)
        self._numbers = [numbers.get(_entry(piece), UNKNOWN) for piece in pieces]
        order = {piece: index for index, piece in enumerate(pieces)}
        self._bpe = Tokenizer(
            BPE(order, list(merges), unk_token=_UNKNOWN_TEXT, fuse_unk=False, end_of_word_suffix=_END_OF_WORD)
        )
        self._moses = _Moses(*languages)

    def encode(self, text: str) -> list[int]:
        words = self._moses.words(text)
        return [self._numbers[piece] for piece in self._bpe.encode(words, is_pretokenized=True).ids] if words else []

    def decode(self, tokens: Iterable[int]) -> str:
        pieces = " ".join(self._text(token) for token in tokens if token not in (PAD, BEGIN, END))
        return self._moses.text(pieces.replace(f"{_MORE_FOLLOWS} ", "").removesuffix(_MORE_FOLLOWS).split())

    def _text(self, token: int) -> str:
        entry = token - MARKS
        return self._entries[entry] if 0 <= entry < len(self._entries) else _UNKNOWN_TEXT


class _Moses:
    """Splitting a text into words and putting them together again, by the rules of the Moses toolkit."""

    def __init__(self, source: str, target: str) -> None:
        try:
            import sacremoses  # type: ignore[import-untyped]  # here: random weights do without, and it is slow to import
        except ImportError as error:
            raise WeightsError(
                f"weights with {CODES} need the package sacremoses; install functions/gnmt/requirements.txt"
            ) from error
        self._tokenizer = sacremoses.MosesTokenizer(source)
        self._detokenizer = sacremoses.MosesDetokenizer(target)

    def words(self, text: str) -> list[str]:
        words: list[str] = self._tokenizer.tokenize(text)
        return words

    def text(self, words: Sequence[str]) -> str:
        text: str = self._detokenizer.detokenize(list(words))
        return text


def load_vocabulary(weights: Weights, config: GnmtConfig) -> Vocabulary:
    """The vocabulary that came with the weights, or characters for random ones.

    Raises:
        WeightsError: files missing, unreadable, or with more entries than the model's `vocab_size`.
    """
    if weights.is_random:
        return CharacterVocabulary(config.vocab_size)
    merges = _read_merges(_lines(weights, CODES), f"{weights.text}: {CODES}")
    entries = [line.strip() for line in _lines(weights, ENTRIES)]
    if len(entries) + MARKS > config.vocab_size:
        raise WeightsError(
            f"{weights.text}: {ENTRIES} has {len(entries)} entries, and {MARKS} marks come before them; "
            f"the model has vocab_size {config.vocab_size}"
        )
    return PieceVocabulary(merges, entries, languages=(config.source_language, config.target_language))


def _lines(weights: Weights, name: str) -> list[str]:
    path: Path | None = weights.file(name)
    if path is None:
        raise WeightsError(f"{weights.text}: no {name} beside the weights; it belongs to the checkpoint's vocabulary")
    try:
        return path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise WeightsError(f"{weights.text}: {name} is not UTF-8 text: {error}") from error


def _read_merges(lines: Sequence[str], name: str) -> list[tuple[str, str]]:
    if lines[0].strip() != CODES_VERSION:
        raise WeightsError(f"{name}: begins with {lines[0][:40]!r}; merges of subword-nmt begin with {CODES_VERSION!r}")
    merges: dict[tuple[str, str], None] = {}  # a pair that comes twice keeps its first rank
    for number, line in enumerate(lines[1:], start=2):
        pair = line.strip("\r\n ").split(" ")
        if len(pair) != 2:
            raise WeightsError(f"{name}, line {number}: {line[:40]!r} is not a pair of pieces with a space between")
        merges[pair[0], pair[1]] = None
    return list(merges)


def _pieces(merges: Sequence[tuple[str, str]], entries: Sequence[str]) -> list[str]:
    """Everything a word can be cut into: single characters, what is merged, and what comes of it."""
    known = {_UNKNOWN_TEXT: None}
    for left, right in merges:
        known.update(dict.fromkeys((left, right, left + right)))
    known.update(dict.fromkeys(_piece(entry) for entry in entries))
    return list(known)


def _piece(entry: str) -> str:
    """The vocabulary marks pieces that something follows; the merges mark those that nothing follows."""
    return entry.removesuffix(_MORE_FOLLOWS) if entry.endswith(_MORE_FOLLOWS) else entry + _END_OF_WORD


def _entry(piece: str) -> str:
    return piece.removesuffix(_END_OF_WORD) if piece.endswith(_END_OF_WORD) else piece + _MORE_FOLLOWS
