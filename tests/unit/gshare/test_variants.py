from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from gshare.config import ReplicaConfig
from gshare.context import Context
from gshare.device import open_device
from gshare.errors import ConfigError
from gshare.variants import check_variant, variant_config, variant_name
from gshare.weights import open_weights

VARIANTS = {"small": {"depths": (1, 2), "width": 4}, "big": {"depths": (3, 4), "width": 8}}
BIG = SimpleNamespace(depths=[3, 4], width=8)
Open = Callable[..., Context]


@pytest.fixture
def context(tmp_path: Path) -> Open:
    """Makes the context of a function with random weights, or of one whose weights come with a config.json."""

    def open_context(*, own: dict[str, object] | None = None, **env: str) -> Context:
        config = ReplicaConfig(weights_root=str(tmp_path), weights_cache=str(tmp_path), device="cpu:0")
        if own is not None:
            (tmp_path / "config.json").write_text(json.dumps(own))
            (tmp_path / "model.safetensors").touch()
        weights = open_weights("" if own is None else "file:.", config, hub_token=None)
        return Context(open_device(config), weights, env, tmp_path)

    return open_context


def test_the_first_variant_is_the_default(context: Open) -> None:
    assert variant_config(context(), VARIANTS, {"labels": 3}) == {"labels": 3, "depths": (1, 2), "width": 4}


def test_a_named_variant_is_taken_and_model_config_laid_over_it(context: Open) -> None:
    asked = context(MODEL_VARIANT="big", MODEL_CONFIG='{"width": 5}')

    assert variant_config(asked, VARIANTS, {}) == {"depths": (3, 4), "width": 5}


def test_an_unknown_variant_is_refused_with_those_there_are(context: Open) -> None:
    with pytest.raises(ConfigError, match="MODEL_VARIANT='huge': there are small, big"):
        variant_config(context(MODEL_VARIANT="huge"), VARIANTS, {})


def test_real_weights_say_themselves_what_they_are(context: Open) -> None:
    real = context(own={"depths": [9], "width": 9})

    assert variant_config(real, VARIANTS, {"labels": 3}) == {"depths": [9], "width": 9}
    check_variant(real, VARIANTS, SimpleNamespace(depths=[9], width=9))


def test_a_variant_beside_real_weights_must_be_theirs(context: Open) -> None:
    check_variant(context(own={}, MODEL_VARIANT="big"), VARIANTS, BIG)
    with pytest.raises(ConfigError, match=r"MODEL_VARIANT=small has depths \(1, 2\), file:\. has \[3, 4\]; leave"):
        check_variant(context(own={}, MODEL_VARIANT="small"), VARIANTS, BIG)


def test_what_model_config_made_of_random_weights_is_not_held_against_the_variant(context: Open) -> None:
    check_variant(context(MODEL_VARIANT="small"), VARIANTS, BIG)


def test_an_architecture_is_called_by_the_variant_that_it_is() -> None:
    assert variant_name(VARIANTS, BIG) == "big"
    assert variant_name(VARIANTS, SimpleNamespace(depths=(3, 4), width=9)) is None
