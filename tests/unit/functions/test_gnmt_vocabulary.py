"""Text to tokens and back: pieces as subword-nmt cuts them, words as Moses splits them, characters."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from gshare.config import ReplicaConfig
from gshare.errors import WeightsError
from gshare.gnmt_checkpoint import CODES, ENTRIES
from gshare.weights import Weights, open_weights
from hypothesis import given
from hypothesis import strategies as st

from functions.gnmt.model import BEGIN, END, PAD, UNKNOWN, GnmtConfig
from functions.gnmt.vocabulary import CharacterVocabulary, PieceVocabulary, load_vocabulary

MERGES = [
    *[("l", "o"), ("e", "r</w>"), ("lo", "w"), ("n", "e"), ("ne", "w"), ("low", "er</w>"), ("a", "a"), ("lo", "w</w>")],
    *[("&", "a"), ("&a", "p"), ("&ap", "o"), ("&apo", "s"), ("&apos", ";"), ("&apos;", "s</w>")],
]
ENTRY_LIST = ["low@@", "low", "lower", "er", "new@@", "a@@", "a", "aa@@", "e@@", "w@@", "w", ",", "&apos;s", "ü@@", "ü"]
LANGUAGES = ("en", "de")


@pytest.fixture(scope="module")
def pieces() -> PieceVocabulary:
    return PieceVocabulary(MERGES, ENTRY_LIST, languages=LANGUAGES)


def names(tokens: list[int]) -> list[str]:
    return [ENTRY_LIST[token - 4] if token != UNKNOWN else "?" for token in tokens]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("low", ["low"]),
        ("lower newer", ["lower", "new@@", "er"]),
        ("lowlow", ["low@@", "low"]),
        ("low, a's", ["low", ",", "a", "&apos;s"]),
        ("aaa", ["aa@@", "a"]),
        ("aéa", ["a@@", "?", "a"]),
        ("a 😀 a", ["a", "?", "a"]),
        ("  low\n\tlow ", ["low", "low"]),
        ("üü", ["ü@@", "ü"]),
        ("\x00\x07", []),
    ],
)
def test_words_are_split_and_cut_into_the_pieces_of_the_vocabulary(
    pieces: PieceVocabulary, text: str, expected: list[str]
) -> None:
    assert names(pieces.encode(text)) == expected


def subword_nmt(word: str) -> list[str]:
    """The published algorithm, as slow as it is plain: the pair of lowest rank is joined wherever it stands."""
    parts = [*word[:-1], word[-1] + "</w>"]
    while ranked := [MERGES.index(pair) for pair in itertools.pairwise(parts) if pair in MERGES]:
        pair, joined = MERGES[min(ranked)], []
        while parts:
            size = 2 if tuple(parts[:2]) == pair else 1
            joined.append("".join(parts[:size]))
            parts = parts[size:]
        parts = joined
    return [f"{part}@@" for part in parts[:-1]] + [parts[-1].removesuffix("</w>")]


@given(st.text("lowernaé", min_size=1, max_size=12))
def test_pieces_are_those_of_the_published_algorithm(pieces: PieceVocabulary, word: str) -> None:
    expected = [piece if piece in ENTRY_LIST else "?" for piece in subword_nmt(word)]
    assert names(pieces.encode(word)) == expected


def test_pieces_are_put_together_to_text_without_marks(pieces: PieceVocabulary) -> None:
    tokens = [4 + ENTRY_LIST.index(entry) for entry in ("new@@", "er", ",", "low", "&apos;s")]
    assert pieces.decode([BEGIN, *tokens, END, PAD]) == "newer, low 's"  # as German has it
    assert pieces.decode([*tokens[:1], UNKNOWN, 999]) == "new<unk> <unk>"
    assert pieces.decode([]) == ""


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=40))
def test_characters_come_back_as_they_went_in(text: str) -> None:
    vocabulary = CharacterVocabulary(32_320)
    assert vocabulary.decode([BEGIN, *vocabulary.encode(text), END]) == text


@given(st.text(max_size=20), st.integers(5, 100_000))
def test_every_text_has_tokens_within_the_vocabulary(text: str, size: int) -> None:
    tokens = CharacterVocabulary(size).encode(text)
    assert len(tokens) == len(text)
    assert all(token == UNKNOWN or 4 <= token < size for token in tokens)


@given(st.lists(st.integers(0, 999_999), max_size=20))
def test_every_token_has_text_that_can_be_sent(tokens: list[int]) -> None:
    CharacterVocabulary(1_000_000).decode(tokens).encode()


def weights_in(folder: Path, *, codes: bytes | None, entries: bytes | None) -> Weights:
    for name, content in ((CODES, codes), (ENTRIES, entries), ("model.safetensors", b"")):
        if content is not None:
            (folder / name).write_bytes(content)
    return open_weights(f"file:{folder.name}", ReplicaConfig(weights_root=str(folder.parent)), hub_token=None)


@pytest.mark.parametrize(
    ("codes", "entries", "says"),
    [
        (None, b"a\n", "no bpe.32000 beside the weights"),
        (b"#version: 0.2\na b\n", None, "no vocab.bpe.32000 beside the weights"),
        (b"a b\n", b"a\n", "bpe.32000: begins with 'a b'"),
        (b"", b"a\n", "bpe.32000: begins with ''"),
        (b"#version: 0.2\na b\na b c\n", b"a\n", "bpe.32000, line 3: 'a b c' is not a pair"),
        (b"#version: 0.2\n", b"\xff\n", "vocab.bpe.32000 is not UTF-8"),
        (b"#version: 0.2\n", b"a\nb\nc\n", "vocab.bpe.32000 has 3 entries"),
    ],
)
def test_a_vocabulary_that_cannot_be_used_is_refused_with_the_reason(
    tmp_path: Path, codes: bytes | None, entries: bytes | None, says: str
) -> None:
    weights = weights_in(tmp_path, codes=codes, entries=entries)
    with pytest.raises(WeightsError) as refusal:
        load_vocabulary(weights, GnmtConfig(vocab_size=6))
    assert says in str(refusal.value)


def test_a_pair_that_comes_twice_keeps_its_first_rank(tmp_path: Path) -> None:
    codes = b"#version: 0.2\na b\nb c</w>\na b\n"
    weights = weights_in(tmp_path, codes=codes, entries=b"ab@@\nc\n")
    assert load_vocabulary(weights, GnmtConfig()).encode("abc") == [4, 5]
