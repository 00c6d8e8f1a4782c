"""How a model wants its pictures, from the file that lies beside its weights.

Three kinds are read: preprocessor_config.json of transformers' ConvNeXT kind (which its ResNets use) and ViT kind, and
the `pretrained_cfg` in timm's config.json. A step that is not done here is refused, never left out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from PIL import Image

from gshare.errors import WeightsError
from gshare.inputs.pixels import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

FILE = "preprocessor_config.json"
_KIND = re.compile(r"(ConvNext|ViT)(ImageProcessor|FeatureExtractor)(Fast|Pil)?")
_CROP_PCT = 224 / 256
_WARP_FROM = 384
"""From this size on, the ConvNeXT kind squeezes the whole picture into the square; below, it cuts its centre."""
_HALF = (0.5, 0.5, 0.5)

Fraction = Annotated[float, Meta(gt=0, le=1)]
Edge = Annotated[int, Meta(ge=1, le=4096)]
Three = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Kind:
    """One of transformers' image processors, with what it does where its file says nothing."""

    name: str
    edge: int
    resample: Image.Resampling
    mean: Three
    std: Three


CONVNEXT = Kind("ConvNext", 224, Image.Resampling.BICUBIC, IMAGENET_MEAN, IMAGENET_STD)
VIT = Kind("ViT", 224, Image.Resampling.BILINEAR, _HALF, _HALF)
_KINDS = {kind.name: kind for kind in (CONVNEXT, VIT)}


class _Size(msgspec.Struct):
    shortest_edge: Edge | None = None
    height: Edge | None = None
    width: Edge | None = None


class _Processor(msgspec.Struct):
    """A preprocessor_config.json; null stands for what the kind does by itself."""

    image_processor_type: str | None = None
    feature_extractor_type: str | None = None
    size: Edge | _Size | None = None
    crop_pct: Fraction | None = None
    resample: Annotated[int, Meta(ge=0, le=5)] | None = None
    image_mean: Three | None = None
    image_std: Three | None = None
    rescale_factor: float | None = None
    do_resize: Literal[True] | None = None
    do_rescale: Literal[True] | None = None
    do_normalize: Literal[True] | None = None
    do_center_crop: Literal[False] | None = None
    do_pad: Literal[False] | None = None


class TimmPicture(msgspec.Struct):
    """The part of timm's `pretrained_cfg` that says how a picture becomes pixels."""

    input_size: tuple[Literal[3], Edge, Edge] = (3, 224, 224)
    interpolation: Literal["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"] = "bilinear"
    crop_pct: Fraction = _CROP_PCT
    crop_mode: Literal["center"] = "center"
    mean: Three = IMAGENET_MEAN
    std: Three = IMAGENET_STD


def processor_settings(config: Mapping[str, Any] | None, *, default: Kind, edge: int | None = None) -> Preprocessing:
    """From a preprocessor_config.json; where it says nothing, of the `default` kind and for pictures of `edge`.

    Raises:
        WeightsError: a kind or a step that is not done here.
    """
    try:
        told = msgspec.convert(config or {}, _Processor)
    except msgspec.ValidationError as error:
        raise WeightsError(f"{FILE} asks for what is not done here: {error}") from error
    kind = _kind(told, default)
    side = _edge(told.size, edge or kind.edge, wants_square=kind is VIT)
    return Preprocessing(
        edge=side,
        shorter_side=_shorter_side(kind, side, told.crop_pct),
        resample=Image.Resampling(kind.resample if told.resample is None else told.resample),
        mean=told.image_mean or kind.mean,
        std=told.image_std or kind.std,
        scale=told.rescale_factor or 1 / 255,
    )


def timm_settings(told: TimmPicture) -> Preprocessing:
    """As timm prepares pictures for evaluation, which for its defaults is as torchvision does.

    Raises:
        WeightsError: pictures that are not square.
    """
    _, height, width = told.input_size
    if height != width:
        raise WeightsError(f"config.json: input_size={list(told.input_size)}; only square pictures are supported")
    return Preprocessing(
        edge=height,
        shorter_side=int(height / told.crop_pct),
        resample=Image.Resampling[told.interpolation.upper()],
        mean=told.mean,
        std=told.std,
        rounded_centre=True,
    )


def _kind(told: _Processor, default: Kind) -> Kind:
    name = told.image_processor_type or told.feature_extractor_type
    if name is None:
        return default
    match = _KIND.fullmatch(name)
    if match is None:
        raise WeightsError(f"{FILE}: the kind is {name}; supported: {', '.join(f'{k}ImageProcessor' for k in _KINDS)}")
    return _KINDS[match[1]]


def _edge(size: int | _Size | None, otherwise: int, *, wants_square: bool) -> int:
    if not isinstance(size, _Size):
        return size or otherwise
    edge = size.height if wants_square and size.height == size.width else size.shortest_edge
    if edge is None or (wants_square and size.shortest_edge):
        asked = "equal height and width" if wants_square else "a shortest_edge"
        raise WeightsError(f"{FILE}: size={msgspec.to_builtins(size)}; {asked}, in pixels, is supported")
    return edge


def _shorter_side(kind: Kind, edge: int, crop_pct: float | None) -> int | None:
    if kind is VIT or edge >= _WARP_FROM:
        return None
    return int(edge / (crop_pct or _CROP_PCT))
