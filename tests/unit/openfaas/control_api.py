"""The control API as tests call it, in this process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse


class ControlApi:
    """Calls as a client on this machine makes them."""

    def __init__(self, client: FlaskClient, functions: Path, *, home: Path) -> None:
        self.client, self.functions, self.home = client, functions, home

    def make_code(self, name: str, text: str = "def handle(event, context):\n    return 'ok'\n") -> Path:
        folder = self.functions / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "handler.py").write_text(text)
        return folder

    def call(self, method: str, path: str, body: object = None) -> TestResponse:
        data = None if body is None else json.dumps(body)
        return self.client.open(path, method=method, data=data, base_url="http://127.0.0.1:8080")

    def deploy(self, method: str = "POST", **body: Any) -> TestResponse:
        return self.call(method, "/system/functions", {"service": "echo", "image": "gshare/echo:1", **body})

    def read(self, path: str) -> Any:
        """What a GET answers, as JSON."""
        answer = self.call("GET", path)
        assert answer.status_code == 200, answer.text
        return json.loads(answer.data)

    def function(self, name: str = "echo") -> dict[str, Any]:
        found: dict[str, Any] = self.read(f"/system/function/{name}")
        return found
