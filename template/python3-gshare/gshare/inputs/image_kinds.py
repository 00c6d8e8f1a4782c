"""What kind of picture the first bytes of a body say it is, and a helpful refusal for those that are not read here."""

from __future__ import annotations

from gshare.errors import BadInput, UnsupportedMedia

KINDS = "JPEG, PNG, WebP, BMP and TIFF"
_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
    (b"II+\x00", "TIFF"),
    (b"MM\x00+", "TIFF"),
)
_OTHER_MEDIA = (
    (b"gif8", "GIF, whose pictures move"),
    (b"%pdf", "PDF"),
    (b"<svg", "SVG"),
    (b"<?xml", "XML or SVG"),
    (b"<!--", "HTML or SVG"),
    (b"<!doctype", "HTML"),
    (b"<html", "HTML"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\x00\x00\x00\x0cjxl ", "JPEG XL"),
    (b"\x00\x00\x00\x0cjp  ", "JPEG 2000"),
    (b"8bps", "Photoshop"),
)


def kind_of(data: bytes) -> str:
    """`JPEG`, `PNG`, `WEBP`, `BMP` or `TIFF`. Raises: BadInput for no picture, UnsupportedMedia for another kind."""
    if not data:
        raise BadInput(f"the picture is empty (0 bytes); send {KINDS}")
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    kind = next((kind for magic, kind in _MAGIC if data.startswith(magic)), None)
    if kind is not None:
        return kind
    other = _other_media(data)
    if other:
        raise UnsupportedMedia(f"the body is {other}; this function reads {KINDS}")
    start = data[:16].hex(" ")
    raise BadInput(f"the body is no picture: {len(data)} bytes that begin with {start}; send {KINDS}")


def _other_media(data: bytes) -> str | None:
    head = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head[4:8] == b"ftyp":
        return "HEIC, AVIF or video"
    return next((name for magic, name in _OTHER_MEDIA if head.startswith(magic)), None)
