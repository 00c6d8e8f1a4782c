"""`stack.yml` as faas-cli reads it: the same file, the same deployments.

Keys that faas-cli knows and a deployment does not carry (`build_args`, `platforms`, …) are left alone, and so are keys
that nobody knows. Files named in `environment_file` are looked up beside the stack file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway_plugin.errors import BadRequest, StackError
from gateway_plugin.model import FunctionSpec
from gateway_plugin.openfaas.validation import validate
from gateway_plugin.stack_yaml import load_text, substitute

FILE_NAMES = ("stack.yaml", "stack.yml")
"""In the order in which faas-cli looks."""
VERSION = "1.0"
PROVIDER = "openfaas"
QUANTITY_KEYS = ("memory", "cpu")
"""All that faas-cli sends of `limits` and `requests`."""
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_LANG = re.compile(r"[A-Za-z0-9][-A-Za-z0-9_.@]*")


@dataclass(frozen=True, slots=True)
class StackFunction:
    """One entry: what is deployed, and where its code lies."""

    spec: FunctionSpec
    handler: Path | None
    """The function's folder, if the entry names one."""
    skip_build: bool
    """Whether no image is to be built of it."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A stack file that has been read and found good."""

    path: Path
    gateway: str
    """`provider.gateway`; empty: not given."""
    functions: tuple[StackFunction, ...]
    """In the order of the file."""


def find_stack(folder: Path) -> Path:
    """Raises: StackError where there is neither file."""
    for name in FILE_NAMES:
        if (folder / name).is_file():
            return folder / name
    raise StackError(f"{folder}: no {' or '.join(FILE_NAMES)} there; name one with -f")


def read_stack(path: Path, env: Mapping[str, str], *, names: Collection[str] = ()) -> Stack:
    """Read and check the entries called `names` (all, if none are named).

    Raises:
        StackError: a line for each function that cannot be deployed as written.
    """
    document = _Entry(load_text(substitute(_read(path), env, path=path), path=path), str(path))
    _check_head(document)
    entries = document.mapping("functions")
    if not entries:
        raise StackError(f"{path}: functions: none; write at least one")
    return Stack(path, document.entry("provider").text("gateway"), _functions(path, _chosen(path, entries, names)))


def _check_head(document: _Entry) -> None:
    version = document.text("version", default=VERSION)
    if version != VERSION:
        raise StackError(f"{document.where}: version: {version!r} is not accepted; write {VERSION}")
    provider = document.entry("provider").text("name")
    if provider != PROVIDER:
        raise StackError(f"{document.where}: provider.name: {provider!r} is not accepted; write {PROVIDER}")


def _chosen(path: Path, entries: Mapping[str, Any], names: Collection[str]) -> Mapping[str, Any]:
    missing = sorted(set(names) - set(entries))
    if missing:
        raise StackError(f"{path}: no function {', '.join(missing)}; there are {', '.join(entries)}")
    return {name: entry for name, entry in entries.items() if not names or name in names}


def _functions(path: Path, entries: Mapping[str, Any]) -> tuple[StackFunction, ...]:
    functions, problems = [], []
    for name, raw in entries.items():
        try:
            functions.append(_function(name, _Entry(raw, f"{path}: function {name}"), folder=path.parent))
        except StackError as error:
            problems.append(str(error))
    if problems:
        raise StackError("\n".join(problems))
    return tuple(functions)


def _function(name: str, entry: _Entry, *, folder: Path) -> StackFunction:
    spec = FunctionSpec(
        service=name,
        image=entry.text("image"),
        namespace=entry.text("namespace"),
        env_process=entry.text("fprocess") or _template_process(entry.text("lang"), folder),
        env_vars=_environment(entry, folder),
        constraints=entry.text_list("constraints"),
        secrets=entry.text_list("secrets"),
        labels=entry.text_map("labels"),
        annotations=entry.text_map("annotations"),
        limits=_quantities(entry, "limits"),
        requests=_quantities(entry, "requests"),
        read_only_root_filesystem=entry.flag("readonly_root_filesystem"),
    )
    try:
        validate(spec)
    except BadRequest as error:
        raise StackError(f"{entry.where}: {error}") from error
    handler = entry.text("handler")
    return StackFunction(spec, folder / handler if handler else None, entry.flag("skip_build"))


def _environment(entry: _Entry, folder: Path) -> dict[str, str]:
    merged = entry.text_map("environment")
    for name in entry.text_list("environment_file"):
        path = folder / name
        merged |= _Entry(load_text(_read(path), path=path), str(path)).text_map("environment")
    return merged


def _template_process(lang: str, folder: Path) -> str:
    """`fprocess` of a pulled template, so that faas-cli and we send the same; empty where it is not there."""
    path = folder / "template" / lang / "template.yml"
    if not _LANG.fullmatch(lang) or not path.is_file():
        return ""
    return _Entry(load_text(_read(path), path=path), str(path)).text("fprocess")


def _quantities(entry: _Entry, key: str) -> dict[str, str]:
    return {name: value for name, value in entry.text_map(key).items() if name in QUANTITY_KEYS}


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StackError(f"{path}: cannot be read: {error}") from error


class _Entry:
    """A mapping of a file, read key by key; what is of another kind is refused by file, key and value."""

    def __init__(self, raw: object, where: str) -> None:
        if not isinstance(raw, dict):
            raise StackError(f"{where}: {_shown(raw)} is not accepted; keys and values are expected")
        self._raw, self.where = raw, where

    def text(self, key: str, *, default: str = "") -> str:
        value = self._raw.get(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self._wrong(key, value, "text")
        return value

    def flag(self, key: str) -> bool:
        value = self.text(key, default="false")
        if value.lower() not in (*_TRUE, *_FALSE):
            raise self._wrong(key, value, "true or false")
        return value.lower() in _TRUE

    def mapping(self, key: str) -> dict[str, Any]:
        value = self._raw.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self._wrong(key, value, "keys and values")
        return value

    def entry(self, key: str) -> _Entry:
        return _Entry(self.mapping(key), f"{self.where}: {key}")

    def text_map(self, key: str) -> dict[str, str]:
        value = self.mapping(key)
        for name, text in value.items():
            if text is not None and not isinstance(text, str):
                raise self._wrong(f"{key}.{name}", text, "text")
        return {name: text or "" for name, text in value.items()}

    def text_list(self, key: str) -> list[str]:
        value = self._raw.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, value, "a list of text, one `- item` a line")
        return value

    def _wrong(self, key: str, value: object, allowed: str) -> StackError:
        return StackError(f"{self.where}: {key}: {_shown(value)} is not accepted; write {allowed}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
