"""What lies beside ResNeXt weights: timm's config.json, or one with this function's own settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from gshare.errors import ConfigError, WeightsError
from gshare.inputs.image_settings import TimmPicture, timm_settings
from gshare.inputs.pixels import Preprocessing

from .model import ResNextConfig

DEPTHS = {"50": (3, 4, 6, 3), "101": (3, 4, 23, 3), "152": (3, 8, 36, 3)}
"""Blocks of each stage by the number of layers."""
_ARCHITECTURE = re.compile(r"resnext(50|101|152)_(\d{1,3})x(\d{1,3})d")


class Timm(msgspec.Struct):
    """config.json as timm writes it; what is not named here does not matter to the answer."""

    architecture: str
    num_classes: int = 1000
    pretrained_cfg: TimmPicture = msgspec.field(default_factory=TimmPicture)
    model_args: dict[str, Any] = {}
    label_names: list[str] | None = None
    label_descriptions: dict[str, str] = {}


class Own(ResNextConfig, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """config.json, or MODEL_CONFIG, with the sizes written out, for a ResNeXt that has no name."""

    id2label: dict[int, str] = msgspec.field(default_factory=dict)
    pretrained_cfg: TimmPicture = msgspec.field(default_factory=TimmPicture)


class Described(msgspec.Struct, frozen=True):
    """All that a config says."""

    model: ResNextConfig
    preprocessing: Preprocessing
    labels: dict[int, str]


def describe(settings: Mapping[str, Any], *, weights: str, is_random: bool) -> Described:
    """Raises: WeightsError for another architecture's config, or ConfigError where the settings are MODEL_CONFIG's."""
    try:
        if "architecture" in settings:
            return _from_timm(msgspec.convert(settings, Timm))
        own = msgspec.convert(settings, Own, strict=False)
    except msgspec.ValidationError as error:
        kind = ConfigError if is_random else WeightsError
        raise kind(f"{weights}: the model's settings cannot be used: {error}") from error
    labels = {index: own.id2label.get(index, _unnamed(index)) for index in range(own.num_labels)}
    return Described(own, timm_settings(own.pretrained_cfg), labels)


def _from_timm(told: Timm) -> Described:
    match = _ARCHITECTURE.fullmatch(told.architecture)
    if match is None or told.model_args:
        named = f"{told.architecture} {told.model_args or ''}".rstrip()
        raise WeightsError(
            f"config.json: the architecture is {named}; a plain ResNeXt, e.g. resnext50_32x4d, is served"
        )
    layers, groups, width = match.groups()
    model = ResNextConfig(
        depths=DEPTHS[layers], groups=int(groups), width_per_group=int(width), num_labels=told.num_classes
    )
    names = told.label_names or [_unnamed(index) for index in range(told.num_classes)]
    if len(names) != told.num_classes:
        raise WeightsError(f"config.json: {len(names)} label_names for {told.num_classes} num_classes")
    labels = {index: told.label_descriptions.get(name, name) for index, name in enumerate(names)}
    return Described(model, timm_settings(told.pretrained_cfg), labels)


def _unnamed(index: int) -> str:
    """As transformers calls labels without a name."""
    return f"LABEL_{index}"
