"""The control API over a real Redis; functions' folders are made by the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway_plugin.openfaas.app import create_app
from gateway_plugin.settings import Settings
from gateway_plugin.store import Store
from tests.unit.openfaas.control_api import ControlApi


@pytest.fixture
def store(redis_url: str) -> Store:
    return Store(redis_url)


@pytest.fixture
def api(store: Store, tmp_path: Path) -> ControlApi:
    functions = tmp_path / "functions"
    functions.mkdir()
    settings = Settings(home=tmp_path / "home", functions_path=(str(functions),))
    api = ControlApi(create_app(settings, store).test_client(), functions, home=settings.home)
    api.make_code("echo")
    return api
