"""What the first bytes of a sound file say: its kind, and whether a WAV file is whole.

libsndfile guesses among dozens of formats and reads a cut WAV file as a shorter one; both are caught before it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gshare.errors import BadInput, UnsupportedMedia

_RIFF_HEAD_BYTES = 12
_CHUNK_HEAD_BYTES = 8
_OPEN_ENDED_BYTES = 0x7FFF_0000
"""Programs that write to a pipe put at least this where the length belongs, and mean "to the end"."""
_OTHER_MEDIA = (
    (0, b"ID3", "MP3"),
    (0, b"\xff\xfb", "MP3"),
    (0, b"\xff\xf3", "MP3"),
    (0, b"\xff\xf1", "AAC"),
    (0, b"OggS", "Ogg (Vorbis or Opus)"),
    (4, b"ftyp", "MP4 or M4A"),
    (0, b"\x1aE\xdf\xa3", "WebM or Matroska"),
    (0, b"FORM", "AIFF"),
    (0, b".snd", "AU"),
    (0, b"caff", "CAF"),
    (0, b"RF64", "RF64"),
    (0, b"RIFX", "big-endian RIFX"),
    (8, b"AVI ", "AVI"),
    (8, b"WEBP", "WebP"),
    (0, b"\x89PNG", "PNG"),
    (0, b"\xff\xd8\xff", "JPEG"),
    (0, b"%PDF", "PDF"),
)


def check_container(data: bytes) -> None:
    """Raises: BadInput for what is neither WAV nor FLAC, or a cut WAV; UnsupportedMedia for a known other kind."""
    if not data:
        raise BadInput("the sound is empty (0 bytes); send a WAV or FLAC file")
    if data[:4] == b"RIFF" and data[8:12] == b"WAVE":
        _check_whole(data)
    elif data[:4] != b"fLaC":
        _refuse(data)


def _refuse(data: bytes) -> None:
    for offset, magic, name in _OTHER_MEDIA:
        if data[offset : offset + len(magic)] == magic:
            raise UnsupportedMedia(f"the body is {name}; this function reads WAV and FLAC")
    start = data[:16].hex(" ")
    raise BadInput(f"the body is no WAV or FLAC sound: {len(data)} bytes that begin with {start}")


def _check_whole(data: bytes) -> None:
    for name, start, size in _chunks(data):
        if name != b"data":
            continue
        present = len(data) - start
        if size > present and size < _OPEN_ENDED_BYTES:
            raise BadInput(f"the WAV file is cut: its header promises {size:,} bytes of sound, {present:,} are there")
        return
    raise BadInput("the WAV file has no sound: there is no data chunk in it")


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Name, start of the content and its stated size, of each chunk; chunks begin at even places."""
    place = _RIFF_HEAD_BYTES
    while place + _CHUNK_HEAD_BYTES <= len(data):
        size = int.from_bytes(data[place + 4 : place + 8], "little")
        place += _CHUNK_HEAD_BYTES
        yield data[place - 8 : place - 4], place, size
        place += size + size % 2
