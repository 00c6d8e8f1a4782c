"""JSON bodies: of the shape that is asked for, nearly of it, and of none; and text of every script."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.mutation import mutated
from tests.tiny_functions import words

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\u200b",
    "\ufeff",
    "\ud800",
    "\udfff\ud800",
    "😀" * 20,
    "👩‍👩‍👧‍👦",
    "שלום עולם",
    "مرحبا بالعالم",
    "\u202eabc",
    "e" + "\u0301" * 500,
    "日本語のテキスト",
    "İstanbul ß ﬁ Ǆ",
    "[MASK] [SEP] [CLS] ##x",
    "data:image/png;base64,",
    "http://127.0.0.1/x.png",
    "file:///etc/passwd",
    "%s{0}${x}`id`",
    "x" * 3000,
)
_LITERALS = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"-0",
    b"9" * 5000,
    b"1." + b"0" * 5000,
    b"0x10",
    b"01",
    b"tru",
)
_DEPTHS = (10, 500, 2000, 100_000)


def document_body(source: random.Random, fields: dict[str, Callable[[random.Random], Any]]) -> bytes:
    """A document whose keys are those of `fields`, and whose values are mostly not what belongs there."""
    choice = source.random()
    if choice < 0.1:
        return deep(source)
    body = {name: value(source, right) for name, right in fields.items() if source.random() > 0.1}
    if source.random() < 0.2:
        body[source.choice(("", "x", "__class__", "text", "\x00"))] = value(source, words_of)
    raw = json.dumps(body, ensure_ascii=source.random() < 0.5).encode("utf-8", "surrogatepass")
    if choice < 0.3:
        return raw.replace(b'"', source.choice(_LITERALS), 1) if choice < 0.2 else _with_literal(raw, source)
    return mutated(raw, source) if choice < 0.6 else raw


def words_of(source: random.Random) -> str:
    return words(source, 12)


def base64_of(make: Callable[[random.Random], bytes]) -> Callable[[random.Random], str]:
    """The value of a field that holds a file."""
    return lambda source: base64.b64encode(make(source)).decode()


def value(source: random.Random, right: Callable[[random.Random], Any]) -> Any:
    """What belongs there, half of the time; else any JSON."""
    if source.random() < 0.5:
        return right(source)
    return source.choice((_text, _text, _scalar, _nested))(source)


def deep(source: random.Random) -> bytes:
    """Lists or objects in each other, closed or not."""
    depth = source.choice(_DEPTHS)
    start, end = source.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"text":', b"}]")))
    return start * depth + source.choice((b"", b"1" + end * depth))


def _text(source: random.Random) -> str:
    return source.choice(TEXTS) + source.choice(("", "", words_of(source)))


def _scalar(source: random.Random) -> Any:
    return source.choice((None, True, False, 0, -1, 1, 5, 13, 1001, 2**31, 2**63, 2**64, 10**400, 0.5, -1e308))


def _nested(source: random.Random) -> Any:
    return source.choice(([], {}, [[]], [_text(source)], {"text": _text(source)}, [_scalar(source)] * 50, ["a"] * 40))


def _with_literal(raw: bytes, source: random.Random) -> bytes:
    """A value replaced by what Python writes and JSON does not know."""
    place = raw.find(b":")
    return raw[: place + 1] + source.choice(_LITERALS) + b"}"
