from __future__ import annotations

from pathlib import Path

import huggingface_hub.constants
import pytest
from gshare.errors import WeightsError
from gshare.hub import hub_folder

from tests.hub_cache import hub_repository


@pytest.fixture(autouse=True)
def _offline_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def test_a_revision_in_the_cache_is_found_without_a_network(tmp_path: Path) -> None:
    with hub_repository(tmp_path, "team/model", revision="v1") as folder:
        (folder / "config.json").write_text("{}")

    found = hub_folder("team/model", "v1", token=None)

    assert (found / "config.json").read_text() == "{}"


@pytest.mark.parametrize(("repo", "revision"), [("team/other", "v1"), ("team/model", "v2")])
def test_what_is_not_in_the_cache_is_an_error_that_says_what_to_do(tmp_path: Path, repo: str, revision: str) -> None:
    with hub_repository(tmp_path, "team/model", revision="v1"):
        pass

    with pytest.raises(WeightsError, match=f"hf:{repo}@{revision}: not in the local cache and the hub cannot be"):
        hub_folder(repo, revision, token=None)


def test_a_name_that_the_hub_does_not_allow_is_refused() -> None:
    with pytest.raises(WeightsError, match="hf:-bad-@main"):
        hub_folder("-bad-", "main", token=None)
