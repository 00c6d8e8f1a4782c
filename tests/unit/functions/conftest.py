"""A hub cache of the test's own, without a network."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import pytest


@pytest.fixture
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder in which `hf:` weights are looked for; see `tests.hub_cache`."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    return tmp_path
