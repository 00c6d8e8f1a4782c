"""Records what the question-answering pipeline of transformers 4 answers, which version 5 no longer has.

Run with transformers 4 (4.57.6 was used): python tests/data/qa/record.py
It writes a tiny model with a real vocabulary of word pieces, and `answers.json`: questions with the pipeline's answers.
The weights mean nothing, but are scaled so that the answers differ in place, length and score.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer
from transformers import BertConfig, BertForQuestionAnswering, BertTokenizerFast, pipeline

FOLDER = Path(__file__).parent
MAX_TOKENS = 96
TEXT = (
    "A team serves many deep-learning models with OpenFaaS. One model seldom fills a GPU, yet GPUs are handed out "
    "whole, or not at all. Here functions share GPUs in space, in time and in memory, and each is scaled to its load "
    "under a latency objective, on profiles measured before. The gateway waits for a ready replica; a replica waits "
    "for nobody. Words such as unbelievable, unbelievably and believable fall into pieces."
)
CASES = [
    ("What do functions share?", TEXT),
    ("Who waits?", "The gateway waits for a ready replica; a replica waits for nobody."),
    ("What falls into pieces?", "Unbelievably believable: unbelievable words!"),
    ("Where is it?", "  Café del Mar \u2013 na\u00efve co\u0302te, \U0001f600\U0001f680 here & there.  "),
    ("Who?", "x"),
    ("Why long texts?", " ".join([TEXT] * 4)),
    ("Why capitals?", "GPU gpu GPU gpu GPU gpu shares Shares SHARES"),
    ("Wie lang?", "supercalifragilisticexpialidocious " * 30),
    ("What is share, time and space?", TEXT[::-1]),
]


def make_tokenizer() -> BertTokenizerFast:
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.train_from_iterator([TEXT] * 3, WordPieceTrainer(vocab_size=220, special_tokens=special))
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return BertTokenizerFast(tokenizer_object=tokenizer, model_max_length=MAX_TOKENS)


def make_model(vocabulary: int) -> BertForQuestionAnswering:
    torch.manual_seed(11)
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=48,
        max_position_embeddings=128,
        initializer_range=0.6,
    )
    return BertForQuestionAnswering(config).eval()


def main() -> None:
    tokenizer = make_tokenizer()
    model = make_model(len(tokenizer))
    tokenizer.save_pretrained(FOLDER)
    model.save_pretrained(FOLDER)
    ask = pipeline("question-answering", model=model, tokenizer=tokenizer)
    answers = [{"question": q, "context": c, **ask(question=q, context=c)} for q, c in CASES]
    recorded = {"transformers": transformers.__version__, "answers": answers}
    (FOLDER / "answers.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
