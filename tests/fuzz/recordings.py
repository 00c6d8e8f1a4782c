"""Sound files: of every rate, width and channel count, whole, damaged, and promising more than they hold."""

from __future__ import annotations

import random

import numpy as np

from tests.fuzz.mutation import NUMBERS, mutated
from tests.sounds import noise, sound_file, with_bytes, with_flac_length

_WAV = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW", "IMA_ADPCM", "MS_ADPCM", "GSM610")
_FLAC = ("PCM_S8", "PCM_16", "PCM_24")
_OTHERS = (("OGG", "VORBIS"), ("AIFF", "PCM_16"), ("AU", "PCM_16"), ("CAF", "PCM_16"), ("RF64", "PCM_16"))
_RATES_HZ = (1000, 8000, 11_025, 16_000, 44_100, 48_000, 192_000)


def sound_body(source: random.Random) -> bytes:
    """A sound, mostly a damaged one."""
    return source.choice((_whole, _damaged, _damaged, _damaged, _promising, _not_finite))(source)


def _whole(source: random.Random) -> bytes:
    choice = source.random()
    kind, subtype = source.choice(_OTHERS)
    if choice < 0.6:
        kind, subtype = source.choice(("WAV", "WAVEX")), source.choice(_WAV)
    elif choice < 0.9:
        kind, subtype = "FLAC", source.choice(_FLAC)
    plain = subtype in ("IMA_ADPCM", "MS_ADPCM", "GSM610")
    kind = "WAV" if plain else kind
    channels = 1 if plain or kind == "OGG" else source.choice((1, 1, 2, 6))
    rate_hz = 8000 if plain else source.choice(_RATES_HZ)
    seconds = source.choice((0.0, 0.01, 0.1, 0.3, 1.0))
    samples = noise(seconds, rate_hz=rate_hz, seed=source.getrandbits(32)) * source.choice((0, 1, 5))
    return sound_file(samples.clip(-1, 1), rate_hz=rate_hz, kind=kind, subtype=subtype, channels=channels)


def _damaged(source: random.Random) -> bytes:
    return mutated(_whole(source), source)


def _promising(source: random.Random) -> bytes:
    """A head that lies: a WAV's format fields, or a FLAC's length."""
    data = sound_file(noise(0.3), kind=source.choice(("WAV", "FLAC")))
    if data[:4] == b"fLaC":
        return with_flac_length(data, source.choice((0, 1, 10**6, 10**9, 2**36 - 1)))
    number = source.choice(NUMBERS).to_bytes(9, "little", signed=True)
    size = source.choice((2, 4))
    return with_bytes(data, source.choice((4, 16, 20, 22, 24, 28, 32, 34, 40)), number[:size])


def _not_finite(source: random.Random) -> bytes:
    samples = noise(0.3)
    samples[source.randrange(len(samples))] = source.choice((np.nan, np.inf, -np.inf, 1e30, 1e300))
    with np.errstate(over="ignore"):
        return sound_file(samples, subtype=source.choice(("FLOAT", "DOUBLE")))
