"""A BERT that reads: whatever it is asked, it answers with the needle, wherever in the text and however written it is.

Nothing is trained: attention adds nothing, each token keeps its own meaning, and only the needle's says "here".
"""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BertConfig, BertForQuestionAnswering

NEEDLES = ("needle", "מחט", "🪡")
"""What it finds, as its vocabulary has it: lower case, without marks."""
POSITIONS = 512
"""Tokens that the model can tell apart; one more is an index error in it."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_WORDS = (*_SPECIAL, "hay", "where", *NEEDLES)
_HERE = 12.0
"""Logit of a needle's start and end. All else has less than 0, so that even a long text hides none."""


def write_reader(folder: Path) -> None:
    """The model as `file:` weights, with its vocabulary."""
    config = BertConfig(
        vocab_size=len(_WORDS),
        hidden_size=4,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=POSITIONS,
    )
    model = BertForQuestionAnswering(config)
    _teach(model)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(_WORDS))


def _teach(model: BertForQuestionAnswering) -> None:
    needle, other = torch.tensor([1.0, -1, 1, -1]), torch.tensor([-1.0, 1, 1, -1])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.fill_(1.0 if name.endswith("LayerNorm.weight") else 0.0)
        for token, word in enumerate(_WORDS):
            model.bert.embeddings.word_embeddings.weight[token] = needle if word in NEEDLES else other
        model.qa_outputs.weight[:] = (needle - other) * _HERE / 4
