"""What an image classifier is asked and how it answers: a picture in one of three forms, the top k labels back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from gshare.errors import BadInput
from gshare.inputs.files import base64_file, carries_json, form_file
from gshare.request import Request

DEFAULT_TOP_K = 5
FILE_FIELD = "image"
EXAMPLE = "photo.jpg"
_LONGEST_K = 9
"""Digits; Python itself refuses to read numbers of some thousand."""


class ImageBody(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON form of a request."""

    image: str
    """The picture in base64; a data: URL is taken too."""
    top_k: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Prediction(msgspec.Struct, frozen=True):
    """One label with its probability."""

    label: str
    index: int
    score: float


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """What a request holds."""

    data: bytes
    """The picture's file, not looked at yet."""
    top_k: int


def read_image_question(request: Request, *, labels: int) -> ImageQuestion:
    """The picture and k: its bytes, a multipart file, or JSON {"image": base64, "top_k": n}; ?top_k=n too.

    Raises:
        BadInput: none of these, or a k outside 1–`labels`.
    """
    data, top_k = _parts(request)
    if top_k is None:
        return ImageQuestion(data, labels_asked(request, labels=labels))
    if not 1 <= top_k <= labels:
        raise BadInput(f"top_k={top_k}: a whole number, 1–{labels}")
    return ImageQuestion(data, top_k)


def labels_asked(request: Request, *, labels: int) -> int:
    """The k of ?top_k=k; without it the usual one. Raises: BadInput outside 1–`labels`."""
    text = request.query.get("top_k")
    if text is None:
        return min(DEFAULT_TOP_K, labels)
    is_number = text.isascii() and text.isdigit() and len(text) <= _LONGEST_K
    if not is_number or not 1 <= int(text) <= labels:
        raise BadInput(f"top_k={text[:40]!r}: a whole number, 1–{labels}")
    return int(text)


def top_predictions(scores: NDArray[np.float32], k: int, *, id2label: Mapping[int, str]) -> list[Prediction]:
    """The k best of a row of scores, best first; equal scores by index."""
    order = np.argsort(-scores, kind="stable")[:k]
    return [Prediction(id2label[int(i)], int(i), float(scores[i])) for i in order]


def _parts(request: Request) -> tuple[bytes, int | None]:
    if request.content_type == "multipart/form-data":
        return form_file(request, field=FILE_FIELD, example=EXAMPLE), None
    if carries_json(request):
        body = request.json(ImageBody)
        return base64_file(body.image, field=FILE_FIELD, example=EXAMPLE), body.top_k
    return request.body, None
