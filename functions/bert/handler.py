"""BERT: a question and a text in, the piece of the text that answers it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import torch
from gshare.context import Context
from gshare.handler import Handler
from gshare.inputs.text import Question, QuestionTokenizer, Windows, load_tokenizer, tokens_allowed
from gshare.request import Request
from gshare.spans import Answer, Logits, best_answer
from gshare.tensors import Datatype, Signature, TensorSpec
from tokenizers import Encoding
from torch.nn.utils.rnn import pad_sequence
from transformers import BertConfig, BertForQuestionAnswering

MODEL = "bert"
MAX_TOKENS = 384
STRIDE_TOKENS = 128
ROWS_AT_ONCE = 16
"""Windows in one pass: a long context, or many, must not take any amount of memory."""
LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
EXAMPLE = Question(
    "What do the functions share?",
    "One model seldom fills a GPU, yet GPUs are handed out whole. Here, functions share them in space and time.",
)

SIGNATURE = Signature(
    outputs=(
        TensorSpec("answer", Datatype.BYTES),
        TensorSpec("start", Datatype.INT64),
        TensorSpec("end", Datatype.INT64),
        TensorSpec("score", Datatype.FP32),
    )
)

Output = tuple[Windows, Answer]


class Reader(Handler[Windows, Output]):
    """BERT-large fine-tuned on SQuAD and its like; `random:` weights have the same shape and read single characters."""

    def load(self, context: Context) -> None:
        self.device = context.device.torch_device
        self.weights = context.weights.text
        config = BertConfig(**context.model_config(LARGE))
        most = tokens_allowed(context.weights, positions=config.max_position_embeddings, most=MAX_TOKENS)
        tokenizer = load_tokenizer(context.weights, vocabulary=config.vocab_size)
        self.tokenizer = QuestionTokenizer(tokenizer, max_tokens=most, stride_tokens=min(most // 2, STRIDE_TOKENS))
        self.model = context.build(lambda: BertForQuestionAnswering(config))

    def example(self) -> Windows:
        return self.tokenizer.cut(EXAMPLE)

    def decode(self, request: Request) -> Windows:
        return self.tokenizer.read(request)

    def batch_key(self, item: Windows) -> int:
        """Texts of about one length go together: all are computed as long as the longest."""
        return max(len(encoding.ids) for encoding in item.encodings).bit_length()

    def forward(self, items: list[Windows]) -> list[Output]:
        rows = [encoding for item in items for encoding in item.encodings]
        parts = [self._logits(rows[i : i + ROWS_AT_ONCE]) for i in range(0, len(rows), ROWS_AT_ONCE)]
        logits = iter([pair for part in parts for pair in part])
        return [
            (item, best_answer(item.question.context, item.encodings, [next(logits) for _ in item.encodings]))
            for item in items
        ]

    def encode(self, output: Output, request: Request) -> dict[str, Any]:
        windows, found = output
        return {
            "answer": found.answer,
            "start": found.start,
            "end": found.end,
            "score": found.score,
            "truncated": windows.truncated,
            "model": MODEL,
            "weights": self.weights,
        }

    def signature(self) -> Signature:
        return SIGNATURE

    def encode_tensors(self, output: Output, request: Request) -> Mapping[str, Any]:
        return msgspec.structs.asdict(output[1])

    def _logits(self, rows: Sequence[Encoding]) -> list[tuple[Logits, Logits]]:
        """Start and end logits of each window, for its own tokens."""
        result = self.model(
            input_ids=self._padded([row.ids for row in rows]),
            attention_mask=self._padded([row.attention_mask for row in rows]),
            token_type_ids=self._padded([row.type_ids for row in rows]),
        )
        start, end = (side.float().cpu().numpy() for side in (result.start_logits, result.end_logits))
        return [(start[i, : len(row.ids)], end[i, : len(row.ids)]) for i, row in enumerate(rows)]

    def _padded(self, rows: Sequence[list[int]]) -> torch.Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True).to(self.device)
