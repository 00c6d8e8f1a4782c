"""Where a request target leads. Pure, on the bytes as sent: nothing is decoded, so nothing changes on the way."""

from __future__ import annotations

FUNCTION_PREFIX = b"/function/"
_PREFIX_LENGTH = len(FUNCTION_PREFIX)


def split_function(target: bytes) -> tuple[bytes, bytes] | None:
    """(name, target for the function) of `/function/NAME[/REST][?query]`; None: the control API answers.

    The function sees `/REST`, or `/` where there is none, and the query; `//` and escapes stay as they are.
    """
    if not target.startswith(FUNCTION_PREFIX):
        return None
    path, mark, query = target[_PREFIX_LENGTH:].partition(b"?")
    name, _, rest = path.partition(b"/")
    return name, b"/" + rest + mark + query


def origin_form(target: bytes) -> bytes:
    """`/path?query`, also of a target that came as `http://host/path?query`, as RFC 9112 §3.2.2 allows."""
    if target[:1] == b"/" or b"://" not in target:
        return target
    rest = target.split(b"://", 1)[1]
    cut = min((at for at in (rest.find(b"/"), rest.find(b"?")) if at >= 0), default=len(rest))
    return b"/" + rest[cut:].removeprefix(b"/")
