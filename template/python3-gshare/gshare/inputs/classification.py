"""What an image classifier is asked and how it answers: a picture in one of three forms, the top k labels back."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gshare.errors import BadInput
from gshare.inputs.image import decode_image
from gshare.request import Request

DEFAULT_TOP_K = 5
FILE_FIELD = "image"
_DATA_URL = "data:"


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
    """A decoded request."""

    image: Image.Image
    top_k: int


def read_image_question(request: Request, *, labels: int) -> ImageQuestion:
    """The picture and k: bytes of a JPEG or PNG, a multipart file, or JSON {"image": base64, "top_k": n}; ?top_k=n too.

    Raises:
        BadInput: none of these, or a k outside 1–`labels`; and what `decode_image` raises.
    """
    data, top_k = _parts(request)
    text = request.query.get("top_k")
    if top_k is None and text is not None:
        top_k = int(text) if text.isascii() and text.isdigit() else 0
    if top_k is not None and not 1 <= top_k <= labels:
        raise BadInput(f"top_k={text or top_k!r}: a whole number, 1–{labels}")
    return ImageQuestion(decode_image(data), min(top_k or DEFAULT_TOP_K, labels))


def top_predictions(
    scores: NDArray[np.float32], k: int, *, id2label: Mapping[int, str] | Mapping[Any, str]
) -> list[Prediction]:
    """The k best of a row of scores, best first; equal scores by index."""
    order = np.argsort(-scores, kind="stable")[:k]
    return [Prediction(id2label[int(i)], int(i), float(scores[i])) for i in order]


def _parts(request: Request) -> tuple[bytes, int | None]:
    if request.content_type == "multipart/form-data":
        return _file(request), None
    if request.content_type == "application/json" or request.body.lstrip()[:1] == b"{":
        body = request.json(ImageBody)
        return _from_base64(body.image), body.top_k
    return request.body, None


def _file(request: Request) -> bytes:
    if not request.files:
        raise BadInput(f"the form has no file; send one, e.g. curl -F {FILE_FIELD}=@photo.jpg")
    if FILE_FIELD in request.files:
        return request.files[FILE_FIELD].data
    if len(request.files) > 1:
        names = ", ".join(sorted(request.files))
        raise BadInput(f"the form has several files ({names}); call the picture {FILE_FIELD}")
    return next(iter(request.files.values())).data


def _from_base64(text: str) -> bytes:
    if text.startswith(_DATA_URL):
        text = text.partition(",")[2]
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadInput(f"image: not base64 ({error}); encode the file, e.g. base64 -w0 photo.jpg") from error
