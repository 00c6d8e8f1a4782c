"""One function, several sizes of its model: MODEL_VARIANT chooses, and real weights must be of the size chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gshare.context import Context
from gshare.errors import ConfigError

MODEL_VARIANT = "MODEL_VARIANT"

Variants = Mapping[str, Mapping[str, object]]
"""Settings of the architecture by the variant's name, the default first."""


def variant_config(context: Context, variants: Variants, settings: Mapping[str, object]) -> dict[str, Any]:
    """The architecture: config.json of real weights; else `settings` and the variant's, under MODEL_CONFIG.

    Raises:
        ConfigError: MODEL_VARIANT names none of `variants`, or as `Context.model_config`.
        gshare.errors.WeightsError: as `Context.model_config`.
    """
    name = context.env.get(MODEL_VARIANT) or next(iter(variants))
    if name not in variants:
        raise ConfigError(f"{MODEL_VARIANT}={name!r}: there are {', '.join(variants)}")
    return context.model_config({**settings, **variants[name]})


def check_variant(context: Context, variants: Variants, architecture: object) -> None:
    """Raises: ConfigError if real weights are not of the variant that MODEL_VARIANT asks for."""
    name = context.env.get(MODEL_VARIANT)
    if not name or context.weights.is_random:
        return
    differing = _difference(variants[name], architecture)
    if differing is not None:
        raise ConfigError(
            f"{MODEL_VARIANT}={name} has {differing} {variants[name][differing]}, {context.weights.text} has "
            f"{getattr(architecture, differing)}; leave {MODEL_VARIANT} out, real weights say what they are"
        )


def variant_name(variants: Variants, architecture: object) -> str | None:
    """Which of the variants an architecture is, or None."""
    return next((name for name in variants if _difference(variants[name], architecture) is None), None)


def _difference(settings: Mapping[str, object], architecture: object) -> str | None:
    """The first of the settings that the architecture has otherwise."""
    return next((key for key, value in settings.items() if _plain(getattr(architecture, key)) != value), None)


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
