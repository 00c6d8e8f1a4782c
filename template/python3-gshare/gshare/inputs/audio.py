"""Sound: bytes of an untrusted client to 16 kHz mono, refusing what is no sound, broken or too long.

Limits are checked on the header, and decoding goes in blocks, so that memory follows the limits and not the file.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from gshare.errors import BadInput, TooLarge, UnsupportedMedia
from gshare.inputs.audio_container import check_container

SAMPLE_RATE_HZ = 16_000
"""What speech models are trained on, and what `decode_audio` returns."""
MIN_SECONDS = 0.1
"""Shorter than any spoken word; features of a handful of frames mean nothing."""
MAX_SECONDS = 60.0
LOWEST_RATE_HZ, HIGHEST_RATE_HZ = 1_000, 768_000
MAX_CHANNELS = 64
MAX_SAMPLES = 64_000_000
"""Samples of all channels that are still decoded: about two seconds of work."""
MAX_AMPLITUDE = 2.0**31
"""Full scale is 1; files that hold integers as floats are read too, and no power of theirs overflows a float32."""
_BLOCK_SAMPLES = 262_144
_FORMATS = ("WAV", "WAVEX", "FLAC")
_SUBTYPES = ("PCM_S8", "PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW", "ALAW")
_UNKNOWN_FRAMES = 2**63 - 1
"""What libsndfile says of a FLAC file whose header leaves the length open."""

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Audio:
    """One decoded sound."""

    samples: Samples
    """16 kHz, mono, full scale ±1."""
    rate_hz: int
    """Of the file, by its header."""

    @property
    def seconds(self) -> float:
        return len(self.samples) / SAMPLE_RATE_HZ

    @property
    def is_silent(self) -> bool:
        """Whether there is no sound at all: every sample is zero."""
        return not self.samples.any()


def decode_audio(data: bytes, *, max_seconds: float = MAX_SECONDS) -> Audio:
    """The sound in a WAV or FLAC file, channels averaged, resampled by its header's rate.

    Raises:
        BadInput: no sound, a broken or cut file, shorter than MIN_SECONDS, samples that are no numbers.
        UnsupportedMedia: another kind of file. TooLarge: longer than `max_seconds`, or too many samples.
    """
    check_container(data)
    try:
        with soundfile.SoundFile(io.BytesIO(data)) as file:
            _check_header(file, max_seconds)
            return Audio(_resampled(_mono_blocks(file), file.samplerate), file.samplerate)
    except soundfile.LibsndfileError as error:
        raise BadInput(f"the sound file is broken: {error.error_string}") from error


def _check_header(file: soundfile.SoundFile, max_seconds: float) -> None:
    if file.format not in _FORMATS or file.subtype not in _SUBTYPES:
        known = "8–32-bit integers, 32- and 64-bit floats, µ-law and A-law in WAV, and FLAC"
        raise UnsupportedMedia(f"the sound is {file.subtype} in {file.format}; this function reads {known}")
    if not LOWEST_RATE_HZ <= file.samplerate <= HIGHEST_RATE_HZ:
        allowed = f"{LOWEST_RATE_HZ:,}–{HIGHEST_RATE_HZ:,}"
        raise BadInput(f"the header says {file.samplerate:,} samples a second; {allowed} are read")
    if not 1 <= file.channels <= MAX_CHANNELS:
        raise BadInput(f"the header says {file.channels} channels; 1–{MAX_CHANNELS} are read")
    _check_length(file, max_seconds)


def _check_length(file: soundfile.SoundFile, max_seconds: float) -> None:
    if file.frames == _UNKNOWN_FRAMES:
        raise BadInput("the FLAC header does not say how long it is; write it to a file instead of a pipe")
    seconds = file.frames / file.samplerate
    if seconds > max_seconds:
        raise TooLarge(f"the sound is {seconds:.1f} s long; at most {max_seconds:g} s are read: send it in parts")
    if file.frames * file.channels > MAX_SAMPLES:
        raise TooLarge(
            f"the sound has {file.frames:,} samples on each of {file.channels} channels; at most {MAX_SAMPLES:,} "
            "in all are read: send one channel at a lower rate"
        )
    if seconds < MIN_SECONDS:
        raise BadInput(f"the sound is {seconds:.3f} s long; at least {MIN_SECONDS:g} s are needed")


def _mono_blocks(file: soundfile.SoundFile) -> Iterator[Samples]:
    """The file's samples, channels averaged. Raises: BadInput if they are not numbers, or fewer than promised."""
    missing = file.frames
    while missing:
        block = file.read(_BLOCK_SAMPLES // file.channels, dtype="float32", always_2d=True)
        if not len(block):
            raise BadInput(f"the sound file is cut: {missing:,} of {file.frames:,} samples are missing")
        missing -= len(block)
        peak = float(np.abs(block).max())
        if not peak <= MAX_AMPLITUDE:  # so written that NaN is caught as well
            raise BadInput(f"the sound has samples that are no sound ({peak}); full scale is ±1")
        yield block.mean(axis=1, dtype=np.float32)


def _resampled(blocks: Iterator[Samples], rate_hz: int) -> Samples:
    if rate_hz == SAMPLE_RATE_HZ:
        return np.concatenate(list(blocks))
    stream = soxr.ResampleStream(rate_hz, SAMPLE_RATE_HZ, 1, dtype="float32", quality="HQ")
    parts = [stream.resample_chunk(block) for block in blocks]
    parts.append(stream.resample_chunk(np.empty(0, np.float32), last=True))
    return np.concatenate(parts)
