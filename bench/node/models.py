"""The models that the benchmark's workers run: real functions with seeded weights, and one of known duration."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from gshare.config import ReplicaConfig
from gshare.context import MODEL_CONFIG, Context
from gshare.device import Device
from gshare.entry import Entry, import_entry
from gshare.handler import Handler
from gshare.request import Request
from gshare.weights import open_weights
from torch import nn

FUNCTIONS = Path(__file__).parent.parent.parent / "functions"
WEIGHTS = "random:0"
BERT_6 = '{"hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 3072}'
SMALL_S = 0.002
EDGE = 256
TRIALS = 50


class Small(Handler[torch.Tensor, torch.Tensor]):
    """About the smallest model that is worth serving: as many equal layers as last for SMALL_S on one core."""

    def load(self, context: Context) -> None:  # noqa: ARG002  no weights
        torch.manual_seed(0)
        count = max(1, round(SMALL_S / layer_s()))
        self._layers = nn.Sequential(*(_layer() for _ in range(count))).eval().requires_grad_(False)

    def example(self) -> torch.Tensor:
        return torch.ones(EDGE // 4, EDGE)

    def decode(self, request: Request) -> torch.Tensor:  # noqa: ARG002  all are alike
        return self.example()

    def forward(self, items: list[torch.Tensor]) -> list[torch.Tensor]:
        return [self._layers(item) for item in items]


@cache
def layer_s() -> float:
    """Seconds that one layer takes on one core, at its best: a busy neighbour must not make the model smaller."""
    layer, item, threads = _layer(), torch.ones(EDGE // 4, EDGE), torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.inference_mode():
        best_s = min(_timed(lambda: layer(item)) for _ in range(TRIALS))
    torch.set_num_threads(threads)
    return best_s


@dataclass(frozen=True, slots=True)
class Model:
    """Where a model's code is, and what it is told."""

    entry: Callable[[], Entry]
    env: Mapping[str, str]


MODELS: Mapping[str, Model] = {
    "resnet50": Model(lambda: import_entry(FUNCTIONS / "resnet50"), {}),
    "bert-6": Model(lambda: import_entry(FUNCTIONS / "bert"), {MODEL_CONFIG: BERT_6}),
    "small": Model(lambda: Small, {}),
}


def load(name: str, config: ReplicaConfig, device: Device) -> Handler[Any, Any]:
    """That model on the device, as a replica loads it. Raises: GshareError."""
    model = MODELS[name]
    kind = model.entry()
    assert isinstance(kind, type)  # all of them are handler classes
    handler: Handler[Any, Any] = kind()
    weights = open_weights(WEIGHTS, config, hub_token=None)
    handler.load(Context(device, weights, model.env, Path(config.secrets_dir)))
    return handler


def _layer() -> nn.Module:
    return nn.Sequential(nn.Linear(EDGE, EDGE), nn.ReLU())


def _timed(run: Callable[[], object]) -> float:
    started_s = time.perf_counter()
    run()
    return time.perf_counter() - started_s
