"""SECURITY.md names figures and refusals as the source has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from gshare.config import RESERVED_ENV_NAMES, RESERVED_ENV_PREFIXES

from gateway_plugin.node.tokens.connection import FRAMES_PER_S
from gateway_plugin.node.tokens.seats import FRAME_BYTES, LONGEST_BLOCK_S
from gateway_plugin.node.ungated import ALLOWANCE_CORES, BURST_CORE_S
from gateway_plugin.openfaas.validation import PROCESS_ENV_PREFIXES

ROOT = Path(__file__).parents[3]
PAGE = " ".join((ROOT / "SECURITY.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    "said",
    [
        f"{ALLOWANCE_CORES} cores beside that are allowed",
        f"{BURST_CORE_S:g} core-seconds may gather",
        f"frames of {FRAME_BYTES // 1024} KiB, {FRAMES_PER_S:,} a second",
        f"no block to be longer than {LONGEST_BLOCK_S:g} s",
    ],
)
def test_the_figures_are_those_of_the_source(said: str) -> None:
    assert said in PAGE


def test_every_refused_variable_is_named() -> None:
    refused = [*RESERVED_ENV_NAMES, *(f"{prefix}*" for prefix in (*RESERVED_ENV_PREFIXES, *PROCESS_ENV_PREFIXES))]

    assert [name for name in refused if f"`{name}`" not in PAGE] == []


def test_the_files_it_refers_to_are_there() -> None:
    for name in ("tests/unit/node/test_token_server.py", "docs/writing-a-function.md"):
        assert f"`{name}`" in PAGE
        assert (ROOT / name).is_file()
