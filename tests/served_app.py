"""A replica's whole app inside the test's own process, with a real function in it; faster to start than a process."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from flask.testing import FlaskClient
from gshare.condition import Phase
from gshare.runtime import Runtime
from gshare.server import create_app, runtime_of

FUNCTIONS = Path(__file__).parent.parent / "functions"
START_LIMIT_S = 120.0


@contextmanager
def loaded_app(function: str | Path, env: Mapping[str, str] | None = None) -> Iterator[tuple[FlaskClient, Runtime]]:
    """A client of the app and its runtime, once loading is over, well or not; `function` as `replica` takes it."""
    folder = Path(tempfile.mkdtemp(prefix="gshare-app-"))
    code = folder / "code" / "function"
    if isinstance(function, Path):
        shutil.copytree(function, code, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        code.mkdir(parents=True)
        (code / "handler.py").write_text(function)
    own = {
        "PYTHONPATH": str(code.parent),
        "GSHARE_WEIGHTS_CACHE": str(folder / "cache"),
        "GSHARE_FUNCTION": "tested.fn",
    }
    app = create_app({"HOME": os.environ.get("HOME", "/")} | own | dict(env or {}))
    runtime = runtime_of(app)
    try:
        assert runtime.settled.wait(START_LIMIT_S)
        yield app.test_client(), runtime
    finally:
        runtime.close()
        shutil.rmtree(folder)


@contextmanager
def served(function: str | Path, env: Mapping[str, str] | None = None) -> Iterator[FlaskClient]:
    """A client of a function that is ready; fails with the reason if it cannot be loaded."""
    with loaded_app(function, env) as (client, runtime):
        assert runtime.condition.phase is Phase.READY, runtime.condition.reason
        yield client
