"""Pages of `docs/` that are made from the source: `python -m gateway_plugin.docs_pages --write` or `--check`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path

import click
from gshare import config
from gshare.config import ReplicaConfig

from gateway_plugin import settings

DOCS = Path(__file__).resolve().parent.parent / "docs"
OTHERS_MEANING = {
    "GSHARE_SKIP_BUILD": "`stack.yml`: `false` lets `faas-cli up` build images; default `true`, which needs no Docker.",
    "GSHARE_IMAGE_PREFIX": "`stack.yml`: registry and owner of the images; default `gshare`.",
    "GSHARE_TAG": "`stack.yml`: tag of the images; default `latest`.",
    "GSHARE_TORCH_INDEX": "`make`: package index that torch comes from (a CPU build, cu126, …); remembered in `.venv`.",
    "GSHARE_TEST_SHARED": "tests: folder of recorded material that some tests read besides `tests/data`.",
}
_HEAD = """\
# Settings

<!-- Generated from gateway_plugin/settings.py and gshare/config.py by `make fmt`; do not edit. -->

Everything is set by environment variables, read once at the start. `make up GSHARE_PORT=9000` and
`GSHARE_PORT=9000 make up` do the same. A name that does not exist, a bad value or settings that contradict each other
are refused at the start, all in one message.

Durations are Go durations (`300ms`, `60s`, `1h30m`) or bare seconds. Relative paths count from the folder in which
`gshare` is started.
"""
_REPLICA_HEAD = """\
## What a replica is told

A replica is one process of one function. The node agent writes these variables; in a container that nobody manages
(`docker run`, plain OpenFaaS) you may set them yourself, and all of them are optional. A function's own environment
cannot set names that begin with {prefixes}, nor {names}.
"""


def settings_page() -> str:
    """`docs/settings.md`."""
    plugin = _table(("Variable", "Default", "Meaning"), settings.describe_settings())
    others = _table(("Variable", "Read by"), ((name, OTHERS_MEANING[name]) for name in settings.OTHERS_ENV))
    head = _REPLICA_HEAD.format(
        prefixes=_listed(config.RESERVED_ENV_PREFIXES), names=_listed(config.RESERVED_ENV_NAMES)
    )
    replica = _table(("Variable", "Default", "Meaning"), _replica_rows())
    return "\n".join((_HEAD, "## Gateway, loop and agent\n", plugin, "## Read by others\n", others, head, replica))


def _replica_rows() -> Iterable[tuple[str, str, str]]:
    meanings = settings.field_meanings(ReplicaConfig)
    for field in fields(ReplicaConfig):
        yield config.ENV_PREFIX + field.name.upper(), str(field.default), meanings[field.name]
    yield config.MODEL_WEIGHTS, "", "Weights: `hf:OWNER/REPO@REVISION`, `file:PATH` or `random:SEED`."


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    for name, *middle, meaning in rows:
        cells = [f"`{name}`", *(f"`{text}`" if text else "" for text in middle), meaning]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def stale_pages(docs: Path) -> list[str]:
    """Names of the generated pages in `docs` that differ from what the source says now."""
    return [name for name, text in pages().items() if not _same(docs / name, text)]


def pages() -> dict[str, str]:
    """Every generated page by file name."""
    return {"settings.md": settings_page()}


def _same(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


@click.command(help=__doc__)
@click.option("--write/--check", default=False, help="Write the pages, or only say whether they are up to date.")
def main(*, write: bool) -> None:
    """Exit code 1: a page is stale."""
    stale = stale_pages(DOCS)
    if write:
        for name in stale:
            (DOCS / name).write_text(pages()[name], encoding="utf-8")
    elif stale:
        raise click.ClickException(f"docs/{', docs/'.join(stale)}: older than the source; run make fmt and commit it")


if __name__ == "__main__":
    main()
