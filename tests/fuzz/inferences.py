"""Bodies of the Open Inference Protocol: right ones, with one wrong thing in them, or damaged."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from gshare.openinference.reading import HEAD_LENGTH
from gshare.tensors import Datatype

from tests.fuzz.documents import deep
from tests.fuzz.mutation import NUMBERS, mutated
from tests.fuzz.shot import Shot
from tests.open_inference import binary_elements, tensor

_SIZES = (*NUMBERS, -(2**63), 2**64, 10**30, 1.5, True, "1", None)
_NAMES = ("input", "pixel_values", "reply", "label", "", "x" * 1000, "\x00", "\ud800")
_PARAMETERS = ("binary_data_size", "binary_data", "binary_data_output", "content_type", "top_k", "shared_memory_region")
_PIXELS = 3 * 224 * 224


def inference_shot(source: random.Random, *, model: str, item: Callable[[random.Random], bytes]) -> Shot:
    """`item` makes what the function would take as a body."""
    path = (
        f"/v2/models/{model}/infer"
        if source.random() < 0.95
        else source.choice(("/v2", "/v2/models/x/infer", "/v2/%00"))
    )
    if source.random() < 0.05:
        return Shot("v2", deep(source), path)
    head, tail = source.choice((_binary_items, _text_items, _pixels))(source, item)
    if source.random() < 0.5:
        _spoil(head, source)
    raw = json.dumps(head).encode()
    if source.random() < 0.1:
        raw = mutated(raw, source)
    if source.random() < 0.1:
        tail = mutated(tail, source)
    return Shot("v2", raw + tail, path, _headers(raw, tail, source))


def _headers(raw: bytes, tail: bytes, source: random.Random) -> dict[str, str]:
    if source.random() < 0.1:
        return {HEAD_LENGTH: source.choice(("0", "-1", "x", "", "9" * 400, str(len(raw) - 1), str(len(raw) + 1)))}
    return {HEAD_LENGTH: str(len(raw))} if tail or source.random() < 0.5 else {}


def _binary_items(source: random.Random, item: Callable[[random.Random], bytes]) -> tuple[dict[str, Any], bytes]:
    items = [item(source) for _ in range(source.choice((1, 1, 1, 2, 3)))]
    tail = binary_elements(items)
    parameters = {"binary_data_size": len(tail)}
    return {"inputs": [tensor("input", "BYTES", [len(items)], parameters=parameters)]}, tail


def _text_items(source: random.Random, item: Callable[[random.Random], bytes]) -> tuple[dict[str, Any], bytes]:
    items = [item(source).decode("utf-8", "replace") for _ in range(source.choice((1, 1, 2)))]
    return {"inputs": [tensor("input", "BYTES", [len(items)], data=items)]}, b""


def _pixels(source: random.Random, _item: Callable[[random.Random], bytes]) -> tuple[dict[str, Any], bytes]:
    tail = source.choice((bytes(4 * _PIXELS), source.randbytes(4 * _PIXELS), b"\x00\x00\xc0\x7f" * _PIXELS, bytes(100)))
    parameters = {"binary_data_size": len(tail)}
    return {"inputs": [tensor("pixel_values", "FP32", [1, 3, 224, 224], parameters=parameters)]}, tail


def _spoil(head: dict[str, Any], source: random.Random) -> None:
    """One thing wrong."""
    one = head["inputs"][0]
    spoilers: tuple[Callable[[], object], ...] = (
        lambda: one.update(shape=[source.choice(_SIZES) for _ in range(source.randint(0, 5))]),
        lambda: one["shape"].__setitem__(source.randrange(len(one["shape"])), source.choice(_SIZES)),
        lambda: one.update(datatype=source.choice((*Datatype, "", "FP33", "bytes", 7))),
        lambda: one.update(name=source.choice(_NAMES)),
        lambda: one.update(data=source.choice(([], [[]], [1], ["a", "b"], "a", {}, None, [["a"]], [0.5] * 1000))),
        lambda: one.setdefault("parameters", {}).update(binary_data_size=source.choice(_SIZES)),
        lambda: one.setdefault("parameters", {}).update({source.choice(_PARAMETERS): source.choice(_SIZES)}),
        lambda: head.update(parameters={source.choice(_PARAMETERS): source.choice((*_SIZES, {}, [1]))}),
        lambda: head.update(outputs=[{"name": source.choice(_NAMES)} for _ in range(source.choice((0, 1, 2, 100)))]),
        lambda: head.update(inputs=head["inputs"] * source.choice((0, 2, 70))),
        lambda: head.update(id=source.choice(("é" * 100, 7, None, "\x00", "\ud800"))),
        lambda: head.pop("inputs"),
    )
    source.choice(spoilers)()
