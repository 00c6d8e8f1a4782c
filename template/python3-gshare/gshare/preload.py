"""Why gunicorn's preload is refused, and which line of the function it would break on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from gshare.entry import PACKAGE, find_function
from gshare.errors import FunctionError

ADVICE = (
    "gunicorn's preload is on: the function would be imported before the worker is forked, and CUDA cannot be used "
    "after a fork; turn preload off (--preload, preload_app)"
)


def preload_refusal(env: Mapping[str, str], template: Path) -> str:
    """The whole error text, for the function that this environment would serve."""
    try:
        lines = list(cuda_at_import(find_function(env, template)))
    except FunctionError:
        lines = []
    return "; ".join([ADVICE, *lines])


def cuda_at_import(folder: Path) -> Iterator[str]:
    """Each call that touches CUDA while a file of the function is imported. Even asking whether it is there counts."""
    for path in sorted(folder.glob("*.py")):
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue  # it cannot be imported either, and loading says so
        for call in _calls_at_import(tree):
            text = ast.unparse(call)
            if "cuda" in text:
                yield f"{PACKAGE}/{path.name}, line {call.lineno}: {text[:80]} runs at import; move it into load()"


def _calls_at_import(node: ast.AST) -> Iterator[ast.Call]:
    """The outermost calls that run when a module is imported: bodies of functions do not."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(child, ast.Call):
            yield child
        else:
            yield from _calls_at_import(child)
