"""All that is sent to one function: the n-th shot depends on seed, function and n alone, so it can be sent again."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.fuzz.documents import base64_of, document_body, words_of
from tests.fuzz.forms import form_shot
from tests.fuzz.inferences import inference_shot
from tests.fuzz.mutation import mutated, noise
from tests.fuzz.pictures import picture_body
from tests.fuzz.recordings import sound_body
from tests.fuzz.shot import Shot
from tests.tiny_functions import TinyFunction

_Make = Callable[[random.Random], bytes]
_Fields = dict[str, Callable[[random.Random], Any]]
_FIELDS: dict[str, _Fields] = {
    "bert": {"question": words_of, "context": words_of},
    "gnmt": {"text": words_of},
    "rnnt": {"audio": base64_of(sound_body)},
}
_PICTURE_FIELDS: _Fields = {"image": base64_of(picture_body), "top_k": lambda source: source.randint(1, 12)}
_TYPES = ("application/json", "text/plain", "image/png", "audio/wav; rate=8000", "text/plain; charset=utf-16", "x", "")
_QUERIES = ("", "", "", "?top_k=3", "?top_k=-1", "?top_k=" + "9" * 5000, "?top_k=%00", "?x=%ff&&=")


def shot(function: TinyFunction, *, seed: int, number: int) -> Shot:
    """The n-th of a function's shots."""
    source = random.Random(f"{seed}:{function.name}:{number}")
    own = _own(function)
    choice = source.random()
    if choice < 0.3:
        return inference_shot(source, model=function.name, item=own if choice < 0.12 else function.sample)
    if choice < 0.4:
        return form_shot(source, own(source))
    if choice < 0.5:
        return _sent(source, "foreign", source.choice((picture_body, sound_body, _document(function)))(source))
    if choice < 0.55:
        return _sent(source, "noise", source.choice((b"", noise(source, 5000))))
    if choice < 0.65:
        body = function.sample(source)
        return _sent(source, "sample", mutated(body, source) if source.random() < 0.5 else body)
    if choice < 0.8:
        return _sent(source, "json", _document(function)(source))
    return _sent(source, "own", own(source))


def _own(function: TinyFunction) -> _Make:
    """Bodies of the kind that the function reads."""
    if function.content_type.startswith("image/"):
        return picture_body
    return sound_body if function.content_type.startswith("audio/") else _document(function)


def _document(function: TinyFunction) -> _Make:
    fields = _FIELDS.get(function.name, _PICTURE_FIELDS)
    return lambda source: document_body(source, fields)


def _sent(source: random.Random, kind: str, body: bytes) -> Shot:
    headers = {"Content-Type": source.choice(_TYPES)} if source.random() < 0.4 else {}
    if source.random() < 0.03:
        headers["Content-Encoding"] = source.choice(("gzip", "br", "identity", "x"))
    path = source.choice(("/", "/", "/", "//", "/a/../b", "/%2e%2e/%00", "/%E2%9C%93"))
    return Shot(kind, body, path + source.choice(_QUERIES), headers)
