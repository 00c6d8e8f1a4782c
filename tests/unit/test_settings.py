"""The one configuration: every mistake is named, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_plugin.errors import SettingsError
from gateway_plugin.settings import Settings, describe_settings


def test_defaults_need_no_environment_and_paths_are_absolute(tmp_path: Path) -> None:
    settings = Settings.from_env({}, cwd=tmp_path)
    assert settings.home == tmp_path / ".gshare"
    assert settings.functions_path == (str(tmp_path / "functions"), str(tmp_path))
    assert (settings.bind_host, settings.port) == ("127.0.0.1", 8080)


def test_children_read_the_same_settings_from_the_environment(tmp_path: Path) -> None:
    settings = Settings.from_env({"GSHARE_PORT": "9000", "GSHARE_QUEUE_TIMEOUT_S": "1m30s"}, cwd=tmp_path)
    assert Settings.from_env(settings.to_env(), cwd=Path("/")) == settings
    assert settings.queue_timeout_s == 90.0


def test_every_mistake_is_reported_at_once_with_name_value_and_remedy() -> None:
    with pytest.raises(SettingsError) as caught:
        Settings.from_env(
            {
                "GSHARE_PROT": "1",
                "GSHARE_PORT": "99999",
                "GSHARE_BIND_HOST": "0.0.0.0",
                "GSHARE_TICK_S": "1e3",
                "GSHARE_REDIS_URL": "localhost:6379",
                "GSHARE_LOG_LEVEL": "loud",
            }
        )
    lines = str(caught.value).splitlines()
    assert len(lines) == 6
    assert lines[0] == "GSHARE_PROT: no such setting; did you mean GSHARE_PORT?"
    assert any("GSHARE_PORT='99999': allowed is 1 to 65535" in line for line in lines)
    assert any("GSHARE_BIND_HOST='0.0.0.0'" in line and "authentication" in line for line in lines)
    assert any("redis://" in line for line in lines)


def test_names_of_the_stack_file_and_the_makefile_are_no_mistakes() -> None:
    Settings.from_env({"GSHARE_SKIP_BUILD": "false", "GSHARE_TORCH_INDEX": "x", "OTHER": "y"})


def test_every_setting_is_described() -> None:
    rows = describe_settings()
    assert len(rows) == len(Settings().to_env())
    assert all(meaning for _, _, meaning in rows)
