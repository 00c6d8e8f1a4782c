"""Names for requests that came without one."""

from __future__ import annotations

import random

_FIXED_BITS = 0xF << 76 | 0x3 << 62
_VERSION_4 = 0x4 << 76 | 0x2 << 62


def new_call_id() -> bytes:
    """A random UUID; not from the kernel's source, since a call id is no secret and this is on every request's way."""
    text = f"{random.getrandbits(128) & ~_FIXED_BITS | _VERSION_4:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}".encode()
