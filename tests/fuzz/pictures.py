"""Picture files: of every format and mode, whole, damaged, and promising more than they hold."""

from __future__ import annotations

import io
import random

import numpy as np
from PIL import Image

from tests.fuzz.mutation import mutated, noise
from tests.pictures import png_chunk, png_file

_FORMATS = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "JPEG": ("L", "RGB", "CMYK"),
    "WEBP": ("RGB", "RGBA"),
    "BMP": ("1", "L", "P", "RGB"),
    "TIFF": ("1", "L", "P", "RGB", "RGBA", "CMYK", "I;16", "F"),
    "GIF": ("L", "P"),
    "PPM": ("L", "RGB"),
    "TGA": ("RGB",),
    "ICO": ("RGB",),
}
_SIDES = (1, 2, 3, 17, 64, 200)
_PROMISES = (0, 1, 8, 4000, 20_000, 65_535, 2**31 - 1, 2**32 - 1)


def picture_body(source: random.Random) -> bytes:
    """A picture, mostly a damaged one."""
    make = source.choice((_whole, _damaged, _damaged, _damaged, _promising, _png_of_chunks))
    return make(source)


def _whole(source: random.Random) -> bytes:
    kind = source.choice(list(_FORMATS))
    image = _image(source, source.choice(_FORMATS[kind]))
    stream = io.BytesIO()
    frames = [image.rotate(180)] if kind in ("TIFF", "WEBP", "GIF") and source.random() < 0.2 else []
    more = {"save_all": True, "append_images": frames} if frames else {}
    image.save(stream, kind, **more)
    return stream.getvalue()


def _image(source: random.Random, mode: str) -> Image.Image:
    size = source.choice(_SIDES), source.choice(_SIDES)
    pixels = np.frombuffer(source.randbytes(size[0] * size[1] * 4), np.uint8).reshape(size[1], size[0], 4)
    if mode == "I;16":
        return Image.fromarray(pixels[..., :2].astype(np.uint16)[..., 0] * 257)
    return Image.fromarray(pixels, "RGBA").convert("RGB").convert(mode)


def _damaged(source: random.Random) -> bytes:
    return mutated(_whole(source), source)


def _promising(source: random.Random) -> bytes:
    """A head with any sizes, its checksum right, and a little data."""
    data = png_chunk(b"IDAT", noise(source, 100))
    width, height = source.choice(_PROMISES), source.choice(_PROMISES)
    return png_file(
        width, height, data, depth=source.choice((1, 2, 4, 8, 16, 3)), colours=source.choice((0, 2, 3, 4, 6, 7))
    )


def _png_of_chunks(source: random.Random) -> bytes:
    """Chunks of any kind and content, their checksums right."""
    kinds = (b"IDAT", b"PLTE", b"tRNS", b"tEXt", b"zTXt", b"iTXt", b"iCCP", b"eXIf", b"acTL", b"fcTL", b"fdAT", b"gAMA")
    chunks = [png_chunk(source.choice(kinds), noise(source, 500)) for _ in range(source.randint(1, 6))]
    return png_file(source.choice(_SIDES), source.choice(_SIDES), *chunks, colours=source.choice((0, 2, 3, 4, 6)))
