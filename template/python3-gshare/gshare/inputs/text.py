"""Questions about a text: checked, tokenized and cut into overlapping windows that fit the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
from tokenizers import Encoding, Regex, Tokenizer, pre_tokenizers
from tokenizers.implementations.bert_wordpiece import BertWordPieceTokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer, Split
from tokenizers.processors import TemplateProcessing

from gshare.errors import BadInput, TooLarge, WeightsError
from gshare.request import Request
from gshare.weights import Weights

MAX_CHARACTERS = 1_000_000
"""Of question and context together."""
MAX_QUESTION_CHARACTERS = 10_000
READ_CHARACTERS = 200_000
"""Of a context: more than MAX_WINDOWS of common words hold, and about a second of cutting it into tokens."""
MAX_WINDOWS = 32
"""Windows of one context that are read; the rest is left out, and the reply says so."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_PAIR_SPECIALS = 3
_PIECE_CHARACTERS = 16
"""Words are cut into pieces of so many first: WordPiece takes a word apart in time by the cube of its length."""


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON form of a request."""

    question: str
    context: str


@dataclass(frozen=True, slots=True)
class Windows:
    """A question with each part of its context, as token encodings."""

    question: Question
    encodings: tuple[Encoding, ...]
    truncated: bool
    """Whether the context's end was left out."""


class QuestionTokenizer:
    """Cuts (question, context) into windows of at most `max_tokens`, which overlap by `stride_tokens`."""

    def __init__(self, tokenizer: Tokenizer, *, max_tokens: int, stride_tokens: int) -> None:
        self._question = Tokenizer.from_str(tokenizer.to_str())
        self._question.no_truncation()
        self._question.no_padding()
        self._pair = Tokenizer.from_str(tokenizer.to_str())
        self._pair.no_padding()
        self._pair.enable_truncation(max_tokens, stride=stride_tokens, strategy="only_second")
        self.max_question_tokens = max_tokens - _PAIR_SPECIALS - stride_tokens - 1

    def read(self, request: Request) -> Windows:
        """Raises: BadInput for JSON of another shape, an empty or too long text."""
        return self.cut(request.json(Question))

    def cut(self, asked: Question) -> Windows:
        """Raises: BadInput, as `read`; TooLarge over MAX_CHARACTERS."""
        _check(asked)
        (alone,) = self._question.encode_batch([asked.question], add_special_tokens=False)
        tokens = len(alone)
        if not 1 <= tokens <= self.max_question_tokens:
            raise BadInput(f"question: {tokens} tokens; 1–{self.max_question_tokens} are allowed")
        context = asked.context[:READ_CHARACTERS]
        (first,) = self._pair.encode_batch([(asked.question, context)])  # lets other threads run; encode does not
        if 1 not in first.sequence_ids:
            raise BadInput("context: has no readable text; send the passage that holds the answer")
        encodings = (first, *first.overflowing)
        truncated = len(encodings) > MAX_WINDOWS or len(context) < len(asked.context)
        return Windows(asked, encodings[:MAX_WINDOWS], truncated)


def load_tokenizer(weights: Weights, *, vocabulary: int) -> Tokenizer:
    """The tokenizer that came with the weights, or one of single characters for random ones.

    Raises:
        WeightsError: none there, unreadable, or with more tokens than the model's `vocabulary`.
    """
    tokenizer = _tokenizer(weights)
    if tokenizer.get_vocab_size() > vocabulary:
        raise WeightsError(f"the tokenizer has {tokenizer.get_vocab_size()} tokens, the model only {vocabulary}")
    return tokenizer


def character_tokenizer() -> Tokenizer:
    """BERT's splitting into words, then every character a token of its own; what it does not know is [UNK]."""
    letters = [chr(code) for code in (*range(0x21, 0x7F), *range(0xA1, 0x180))]
    names = [*_SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    vocabulary = {name: index for index, name in enumerate(names)}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=_PIECE_CHARACTERS))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    pieces = Split(Regex(f".{{1,{_PIECE_CHARACTERS}}}"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([BertPreTokenizer(), pieces])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    return tokenizer


def _tokenizer(weights: Weights) -> Tokenizer:
    if weights.is_random:
        return character_tokenizer()
    fast, words = weights.file("tokenizer.json"), weights.file("vocab.txt")
    try:
        if fast is not None:
            return Tokenizer.from_file(str(fast))
        if words is not None:
            lowercase = bool((weights.json("tokenizer_config.json") or {}).get("do_lower_case", True))
            return Tokenizer.from_str(BertWordPieceTokenizer(str(words), lowercase=lowercase).to_str())
    except Exception as error:  # tokenizers raises bare Exception on a broken file
        raise WeightsError(f"{weights.text}: the tokenizer cannot be read: {error}") from error
    raise WeightsError(f"{weights.text}: neither tokenizer.json nor vocab.txt beside the weights")


def tokens_allowed(weights: Weights, *, positions: int, most: int) -> int:
    """Longest input: the least of what tokenizer and model allow, and `most`."""
    config: dict[str, Any] = weights.json("tokenizer_config.json") or {}
    return int(min(config.get("model_max_length") or most, positions, most))


def _check(asked: Question) -> None:
    for name in ("question", "context"):
        if not getattr(asked, name).strip():
            raise BadInput(f"{name}: is empty; send text")
    if len(asked.question) > MAX_QUESTION_CHARACTERS:
        raise TooLarge(f"question: {len(asked.question):,} characters; at most {MAX_QUESTION_CHARACTERS:,}")
    characters = len(asked.question) + len(asked.context)
    if characters > MAX_CHARACTERS:
        raise TooLarge(f"question and context have {characters:,} characters; at most {MAX_CHARACTERS:,}")
