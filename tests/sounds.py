"""Sounds made for tests: tones, and files of every kind with them in."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
import soundfile
from numpy.typing import NDArray

Samples = NDArray[np.float64]


def tone(hz: float, seconds: float, *, rate_hz: int = 16_000, level: float = 0.3) -> Samples:
    """A sine with soft edges of 5 ms."""
    times_s = np.arange(round(seconds * rate_hz)) / rate_hz
    edge = np.clip(np.minimum(times_s, times_s[-1] - times_s) / 0.005, 0, 1)
    return np.asarray(level * edge * np.sin(2 * np.pi * hz * times_s))


def noise(seconds: float, *, rate_hz: int = 16_000, seed: int = 0) -> Samples:
    """White noise."""
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * rate_hz))


def sound_file(
    samples: NDArray[np.generic],
    *,
    rate_hz: int = 16_000,
    kind: str = "WAV",
    subtype: str = "PCM_16",
    channels: int = 1,
) -> bytes:
    """A file with the same samples on every channel."""
    buffer = io.BytesIO()
    soundfile.write(buffer, np.stack([samples] * channels, axis=1), rate_hz, format=kind, subtype=subtype)
    return buffer.getvalue()


def with_bytes(data: bytes, offset: int, replacement: bytes | Sequence[int]) -> bytes:
    """The same file with other bytes from `offset` on."""
    new = bytes(replacement)
    return data[:offset] + new + data[offset + len(new) :]


def with_flac_length(data: bytes, samples: int) -> bytes:
    """The same FLAC file whose header says that it has so many samples (36 bits; 0 means: unknown)."""
    high = data[21] & 0xF0 | samples >> 32
    return with_bytes(data, 21, bytes([high]) + (samples & 0xFFFF_FFFF).to_bytes(4, "big"))
