"""Multipart forms: whole, and with their boundaries, names and headers damaged."""

from __future__ import annotations

import random

from tests.fuzz.mutation import mutated
from tests.fuzz.shot import Shot

_NAMES = ("image", "audio", "file", "", 'a"b', "x" * 2000)


def form_shot(source: random.Random, file: bytes) -> Shot:
    """A form with `file` in it."""
    boundary = source.choice(("x", "----WebKitFormBoundary7MA4YWxk", "a" * 70, "'()+_,-./:=?"))
    parts = [_part(source, file if place == 0 else b"x") for place in range(source.choice((1, 1, 2, 5)))]
    body = b"".join(b"--" + boundary.encode() + b"\r\n" + part + b"\r\n" for part in parts)
    body += b"--" + boundary.encode() + source.choice((b"--\r\n", b"--", b"", b"\r\n"))
    if source.random() < 0.5:
        body = mutated(body, source)
    declared = boundary if source.random() < 0.9 else source.choice(("", "y", "\xff"))
    return Shot("form", body, headers={"Content-Type": f'multipart/form-data; boundary="{declared}"'})


def _part(source: random.Random, file: bytes) -> bytes:
    name = source.choice(_NAMES)
    filename = source.choice(('; filename="p.bin"', "", '; filename=""', '; filename="../../etc/passwd"'))
    kind = source.choice(
        (b"", b"Content-Type: image/png\r\n", b"Content-Transfer-Encoding: base64\r\n", b"X: \xff\r\n")
    )
    return f'Content-Disposition: form-data; name="{name}"{filename}\r\n'.encode() + kind + b"\r\n" + file
