"""Typed messages over asyncio streams, with the framing of `gshare.wire`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from gshare.wire import FrameReader, WireError


async def messages(reader: asyncio.StreamReader, decoder: msgspec.json.Decoder[Any]) -> AsyncIterator[Any]:
    """Messages until the other side closes. Raises: WireError on a frame or message that is none."""
    frames = FrameReader()
    while True:
        try:
            data = await reader.read(65536)
        except OSError:
            return
        if not data:
            return
        for body in frames.feed(data):
            try:
                yield decoder.decode(body)
            except msgspec.MsgspecError as error:
                raise WireError(f"not a message of this protocol: {error}") from error
