"""YAML as faas-cli reads it: variables substituted in the text first, and every scalar kept as it is written.

OpenFaaS's maps are text to text, so `true`, `0.90` and `yes` under `labels` mean those letters; a reader that turns
them into Python values could not give them back.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml

from gateway_plugin.errors import StackError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_NULL = re.compile(r"(~|null|Null|NULL|)\Z")
_MERGE_TAG = "tag:yaml.org,2002:merge"


def substitute(text: str, env: Mapping[str, str], *, path: Path) -> str:
    """`${VAR}` and `${VAR:-default}` replaced, comments included; a variable that is empty counts as unset.

    Raises:
        StackError: another form of `${`, with its line.
    """
    stray = re.search(r"\$\{", _VARIABLE.sub("", text))
    if stray is not None:
        raise StackError(_first_stray(text, path))
    return _VARIABLE.sub(lambda match: env.get(match[1]) or match[2] or "", text)


def load_text(text: str, *, path: Path) -> Any:
    """The document with mappings, lists, text and None, and nothing else.

    Raises:
        StackError: broken YAML or a key written twice, with the line.
    """
    try:
        return yaml.load(text, Loader=_TextLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise StackError(f"{path}: line {line}: not YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:  # e.g. a character that YAML does not allow
        raise StackError(f"{path}: not YAML: {' '.join(str(error).split())}") from error


class _TextLoader(yaml.SafeLoader):
    """Resolves no plain scalar but null, and refuses a key written twice."""

    yaml_implicit_resolvers = {}  # noqa: RUF012 (PyYAML's own class attribute)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE_TAG:
                continue
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is written twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_TextLoader.add_implicit_resolver("tag:yaml.org,2002:null", _NULL, ["~", "n", "N", ""])
_TextLoader.add_implicit_resolver(_MERGE_TAG, re.compile(r"<<\Z"), ["<"])


def _first_stray(text: str, path: Path) -> str:
    for number, line in enumerate(text.splitlines(), start=1):
        rest = _VARIABLE.sub("", line)
        if "${" in rest:
            form = rest[rest.index("${") :].split()[0]
            return f"{path}: line {number}: {form!r} is not understood; write ${{NAME}} or ${{NAME:-default}}"
    return f"{path}: a ${{…}} runs over several lines; write it on one"
