"""The protocol's paths below `/v2`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

PREFIX = "/v2"


class Page(StrEnum):
    """What a path asks for."""

    SERVER = "server"
    LIVE = "live"
    READY = "ready"
    MODEL = "model"
    MODEL_READY = "model ready"
    INFER = "infer"

    @property
    def method(self) -> str:
        return "POST" if self is Page.INFER else "GET"


@dataclass(frozen=True, slots=True)
class Place:
    """A path that the protocol knows."""

    page: Page
    model: str = ""
    version: str = ""


_SERVER_PAGES = {(): Page.SERVER, ("health", "live"): Page.LIVE, ("health", "ready"): Page.READY}
_MODEL_PAGES = {(): Page.MODEL, ("ready",): Page.MODEL_READY, ("infer",): Page.INFER}


def is_below(path: str) -> bool:
    """Whether the protocol could own `path`."""
    return path == PREFIX or path.startswith(f"{PREFIX}/")


def find_place(path: str) -> Place | None:
    """What `path` asks for; None if it is none of the protocol's. A trailing slash makes no difference."""
    if not is_below(path):
        return None
    parts = tuple(path.removesuffix("/").split("/")[2:])
    if parts in _SERVER_PAGES:
        return Place(_SERVER_PAGES[parts])
    if len(parts) < 2 or parts[0] != "models":
        return None
    version, rest = (parts[3], parts[4:]) if len(parts) > 3 and parts[2] == "versions" else ("", parts[2:])
    page = _MODEL_PAGES.get(rest)
    return Place(page, parts[1], version) if page else None
