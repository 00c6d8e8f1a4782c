"""Finds the function's code, imports it as package `function`, and says which of the two kinds it is."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from gshare.errors import FunctionError
from gshare.faults import AUTHORS_ERRORS
from gshare.handler import Handler

PACKAGE = "function"
MODULE = f"{PACKAGE}.handler"
FILE = "handler.py"
HANDLE = "handle"

Handle = Callable[[Any, Any], Any]
Entry = type[Handler[Any, Any]] | Handle


def find_function(env: Mapping[str, str], beside: Path) -> Path:
    """Folder of the function: the first entry of PYTHONPATH that holds `function/handler.py`, else the one `beside`.

    The starter that lies beside the template's index.py must not hide the code that the node chose.
    """
    roots = [Path(entry) for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    for root in (*roots, beside):
        if (root / PACKAGE / FILE).is_file():
            return (root / PACKAGE).resolve()
    raise FunctionError(f"no {PACKAGE}/{FILE} in PYTHONPATH nor beside {beside.name}/index.py")


def import_entry(folder: Path) -> Entry:
    """The handler class or `handle` function in `folder`.

    Raises:
        FunctionError: the module cannot be imported, or defines neither or more than one; the text has the line.
    """
    _install_package(folder)
    try:
        module = importlib.import_module(MODULE)
    except AUTHORS_ERRORS as error:  # edge: importing runs the author's code; whatever it raises is the reason
        raise FunctionError(f"importing {PACKAGE}/{FILE} failed: {explain(error, folder)}") from error
    return choose_entry(module)


def choose_entry(module: ModuleType) -> Entry:
    """By rule: the class named `Handler`, else the only handler class, else `handle`. Raises: FunctionError."""
    own = [c for c in vars(module).values() if _is_handler(c) and c.__module__ == module.__name__]
    named = [c for c in own if c.__name__ == "Handler"]
    candidates = named or own
    if len(candidates) > 1:
        names = ", ".join(c.__name__ for c in candidates)
        raise FunctionError(f"{PACKAGE}/{FILE} has several handler classes ({names}); name the one to serve Handler")
    if candidates:
        return _concrete(candidates[0])
    handle = getattr(module, HANDLE, None)
    if not callable(handle):
        raise FunctionError(
            f"{PACKAGE}/{FILE} has neither a subclass of gshare.handler.Handler nor a function handle(event, context)"
        )
    return handle  # type: ignore[no-any-return]


def explain(error: BaseException, folder: Path) -> str:
    """One line: kind, text, and the last line of the author's code on the way to it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(folder)]
    where = f" ({PACKAGE}/{Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f" ({PACKAGE}/{Path(error.filename).name}, line {error.lineno})"
    return f"{type(error).__name__}: {error}{where}"


def _install_package(folder: Path) -> None:
    """Make `function` that folder, whatever else of the name lies on sys.path."""
    init = folder / "__init__.py"
    spec = (
        importlib.util.spec_from_file_location(PACKAGE, init, submodule_search_locations=[str(folder)])
        if init.is_file()
        else _bare_package(folder)
    )
    assert spec is not None
    package = importlib.util.module_from_spec(spec)
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]:
        del sys.modules[name]
    sys.modules[PACKAGE] = package
    if spec.loader is not None and init.is_file():
        spec.loader.exec_module(package)


def _bare_package(folder: Path) -> ModuleSpec:
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [str(folder)]
    return spec


def _is_handler(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Handler) and value is not Handler


def _concrete(handler: type[Handler[Any, Any]]) -> type[Handler[Any, Any]]:
    if inspect.isabstract(handler):
        missing = ", ".join(sorted(handler.__abstractmethods__))
        raise FunctionError(f"class {handler.__name__} in {PACKAGE}/{FILE} lacks: {missing}")
    return handler
