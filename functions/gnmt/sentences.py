"""What the translator is asked: sentences, checked and turned into tokens within limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import msgspec
from gshare.errors import BadInput, TooLarge
from gshare.request import Request

from .model import BEGIN, END
from .vocabulary import Vocabulary

MAX_TEXTS = 32
MAX_CHARACTERS = 5_000
"""Of one text; refused before it is cut into tokens."""
MAX_TOKENS = 256
"""Of one text. The model was trained on sentences; time grows with the square of their length."""

MAX_TOKENS_TOGETHER = 1024
"""Of all texts of a request: nobody's list may keep the device from everybody else."""


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON form of a request: one of the two."""

    text: str | None = None
    texts: Annotated[list[str], msgspec.Meta(min_length=1, max_length=MAX_TEXTS)] | None = None


@dataclass(frozen=True, slots=True)
class Sentences:
    """A decoded request: tokens of each sentence, both marks included."""

    rows: tuple[tuple[int, ...], ...]
    several: bool
    """Whether the client sent a list and gets one."""

    @property
    def longest(self) -> int:
        return max(map(len, self.rows))


def read_sentences(request: Request, vocabulary: Vocabulary) -> Sentences:
    """The text of a `text/…` body, else that of JSON {"text": …} or {"texts": […]}.

    Raises:
        BadInput: none of these, or a text without content. TooLarge: more than the limits above.
    """
    if request.content_type.startswith("text/"):
        return cut(Body(text=request.text()), vocabulary)
    return cut(request.json(Body), vocabulary)


def cut(asked: Body, vocabulary: Vocabulary) -> Sentences:
    """Raises: as `read_sentences`."""
    if (asked.text is None) == (asked.texts is None):
        raise BadInput('send {"text": "…"} for one sentence or {"texts": ["…", …]} for several, not both')
    if asked.texts is None:
        assert asked.text is not None
        return Sentences((_tokens("text", asked.text, vocabulary),), several=False)
    rows = tuple(_tokens(f"texts[{place}]", text, vocabulary) for place, text in enumerate(asked.texts))
    together = sum(map(len, rows))
    if together > MAX_TOKENS_TOGETHER:
        raise TooLarge(f"texts: {together:,} tokens together; at most {MAX_TOKENS_TOGETHER:,}: send several requests")
    return Sentences(rows, several=True)


def _tokens(name: str, text: str, vocabulary: Vocabulary) -> tuple[int, ...]:
    if len(text) > MAX_CHARACTERS:
        raise TooLarge(f"{name}: {len(text):,} characters; at most {MAX_CHARACTERS:,}: send sentences, as texts")
    if not text.strip():
        raise BadInput(f"{name}: is empty; send a sentence")
    tokens = vocabulary.encode(text)
    if len(tokens) > MAX_TOKENS:
        raise TooLarge(f"{name}: {len(tokens):,} tokens; at most {MAX_TOKENS}: send its sentences one by one, as texts")
    if not tokens:
        raise BadInput(f"{name}: {text[:40]!r} has no readable text; send a sentence")
    return (BEGIN, *tokens, END)
