from pathlib import Path

import pytest
from click.testing import CliRunner

from gateway_plugin import docs_pages, settings
from gateway_plugin.docs_pages import DOCS, main, pages, settings_page, stale_pages


def test_the_committed_pages_say_what_the_source_says() -> None:
    assert stale_pages(DOCS) == []


def test_every_setting_stands_on_the_page_with_its_default_and_meaning() -> None:
    page = settings_page()

    for name, default, meaning in settings.describe_settings():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert default in row
        assert meaning in row


def test_a_replicas_variables_are_documented_from_its_configuration_class() -> None:
    assert "| `GSHARE_SM_PARTITION` | `100` | Percent of the device's SMs. |" in settings_page()


def test_a_page_that_differs_or_is_missing_is_stale(tmp_path: Path) -> None:
    assert stale_pages(tmp_path) == ["settings.md"]

    (tmp_path / "settings.md").write_text(pages()["settings.md"] + "edited by hand\n", encoding="utf-8")

    assert stale_pages(tmp_path) == ["settings.md"]


def test_check_fails_on_a_stale_page_and_passes_after_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docs_pages, "DOCS", tmp_path)

    stale = CliRunner().invoke(main, ["--check"])
    written = CliRunner().invoke(main, ["--write"])
    fresh = CliRunner().invoke(main, ["--check"])

    assert (stale.exit_code, written.exit_code, fresh.exit_code) == (1, 0, 0)
    assert "docs/settings.md: older than the source; run make fmt" in stale.output
