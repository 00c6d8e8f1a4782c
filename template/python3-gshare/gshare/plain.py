"""The plain way to write a function: `handle(event, context)` of OpenFaaS's python3-http template, unchanged."""

from __future__ import annotations

import os
from dataclasses import dataclass

from werkzeug.datastructures import Headers, MultiDict

from gshare.request import Request


class Event:
    """One request, with the attributes that python3-http gives it."""

    def __init__(self, request: Request) -> None:
        self.body: bytes = request.body
        self.headers: Headers = request.headers
        self.method: str = request.method
        self.query: MultiDict[str, str] = request.query
        self.path: str = request.path


@dataclass(slots=True)
class EventContext:
    """What python3-http passes besides the event."""

    hostname: str


def event_context() -> EventContext:
    """The context of this process."""
    return EventContext(hostname=os.environ.get("HOSTNAME", "localhost"))
