"""A JPEG file without what decoding has no use for.

Metadata has any size and any depth, and readers build objects of it before a pixel is decoded. So only what decides
pixels goes on to the decoder; of the rest, the one block that tells which side is up is handed back beside it.
"""

from __future__ import annotations

from gshare.errors import BadInput

MAX_SCAN_PIXELS = 1_000_000_000
"""Scans × pixels. A progressive file has about ten scans; every one costs time for each pixel, and a few bytes."""
_EXIF = b"Exif\x00\x00"
_START_OF_SCAN = 0xDA
_LENGTHLESS = frozenset((0x00, 0x01, *range(0xD0, 0xDA)))
_METADATA = frozenset((*range(0xE1, 0xEE), 0xEF, 0xFE))
"""APP1–APP13, APP15 and comments; APP0 and APP14 say which colours the numbers mean."""


def split_jpeg(data: bytes) -> tuple[bytes, bytes]:
    """The file without metadata, and the content of its first EXIF block (empty if there is none)."""
    kept, exif, place = [data[:2]], b"", 2
    while (place := data.find(b"\xff", place)) >= 0 and place + 4 <= len(data):
        marker = data[place + 1]
        if marker == _START_OF_SCAN:
            break
        if marker == 0xFF or marker in _LENGTHLESS:  # padding, or something that means nothing here
            place += 1 if marker == 0xFF else 2
            continue
        end = place + 2 + int.from_bytes(data[place + 2 : place + 4], "big")
        if marker not in _METADATA:
            kept.append(data[place:end])
        elif not exif and data.startswith(_EXIF, place + 4):
            exif = data[place + 4 : end]
        place = end
    kept.append(data[place:] if place >= 0 else b"")
    return b"".join(kept), exif


def check_scans(data: bytes, *, pixels: int) -> None:
    """Raises: BadInput for a file that would have its pixels decoded hundreds of times over."""
    scans = data.count(b"\xff\xda")  # inside a scan every ff is followed by 00 or a restart marker
    if scans * pixels > MAX_SCAN_PIXELS:
        raise BadInput(
            f"the JPEG picture has {scans} scans of {pixels:,} pixels; at most {MAX_SCAN_PIXELS // pixels} of that size"
        )
