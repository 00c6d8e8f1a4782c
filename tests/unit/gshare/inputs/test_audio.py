"""Sound of every kind becomes 16 kHz mono; what is no sound, broken or too long is refused before it costs memory."""

from __future__ import annotations

import io
import tracemalloc

import numpy as np
import pytest
import soundfile
from gshare.errors import BadInput, TooLarge, UnsupportedMedia
from gshare.inputs.audio import MAX_SAMPLES, decode_audio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sounds import noise, sound_file, tone, with_bytes, with_flac_length

SUBTYPES = {
    "PCM_U8": 0.02,
    "PCM_16": 1e-4,
    "PCM_24": 1e-6,
    "PCM_32": 1e-6,
    "FLOAT": 1e-6,
    "DOUBLE": 1e-6,
    "ULAW": 0.02,
    "ALAW": 0.02,
}


@pytest.mark.parametrize(("subtype", "error"), SUBTYPES.items())
def test_a_wav_file_of_any_sample_type_gives_its_samples(subtype: str, error: float) -> None:
    wave = tone(440, 0.5)

    found = decode_audio(sound_file(wave, subtype=subtype))

    assert found.samples.dtype == np.float32
    assert (found.rate_hz, found.seconds) == (16_000, 0.5)
    np.testing.assert_allclose(found.samples, wave, atol=error)


@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
def test_a_flac_file_gives_its_samples(subtype: str) -> None:
    wave = tone(440, 0.5)

    found = decode_audio(sound_file(wave, kind="FLAC", subtype=subtype))

    np.testing.assert_allclose(found.samples, wave, atol=0.02)


@pytest.mark.parametrize("rate_hz", [8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000, 192_000, 12_347])
def test_a_tone_keeps_pitch_level_and_length_whatever_the_rate_of_the_file(rate_hz: int) -> None:
    found = decode_audio(sound_file(tone(1000, 1.0, rate_hz=rate_hz), rate_hz=rate_hz))

    assert abs(len(found.samples) - 16_000) <= 1
    assert found.rate_hz == rate_hz
    np.testing.assert_allclose(found.samples[1000:15_000], tone(1000, 1.0)[1000:15_000], atol=2e-3)


def test_what_lies_above_8_khz_does_not_fold_back_into_hearing() -> None:
    found = decode_audio(sound_file(tone(11_000, 1.0, rate_hz=44_100), rate_hz=44_100))

    assert np.abs(found.samples[1000:15_000]).max() < 1e-3


@pytest.mark.parametrize(("kind", "channels"), [("WAV", 2), ("WAVEX", 6), ("FLAC", 8), ("WAV", 64)])
def test_channels_are_averaged(kind: str, channels: int) -> None:
    wave = tone(440, 0.5)

    found = decode_audio(sound_file(wave, kind=kind, channels=channels))

    np.testing.assert_allclose(found.samples, wave, atol=1e-4)


def test_opposite_channels_cancel_out_and_that_is_silence() -> None:
    wave = np.round(tone(440, 0.5) * 32_768) / 32_768
    buffer = io.BytesIO()
    soundfile.write(buffer, np.stack([wave, -wave], axis=1), 16_000, format="WAV", subtype="FLOAT")

    assert decode_audio(buffer.getvalue()).is_silent


def test_a_long_file_is_decoded_in_blocks_and_gives_the_same() -> None:
    wave = noise(59.0)

    found = decode_audio(sound_file(wave, subtype="FLOAT", channels=2))

    np.testing.assert_allclose(found.samples, wave, atol=1e-6)


def test_a_file_written_to_a_pipe_reaches_to_its_end() -> None:
    whole = sound_file(tone(440, 0.5))
    size = whole.index(b"data") + 4

    found = decode_audio(with_bytes(whole, size, b"\xff\xff\xff\xff"))

    assert found.seconds == 0.5


WAV = sound_file(tone(440, 0.5))
FLAC = sound_file(noise(0.5), kind="FLAC")
DATA = WAV.index(b"data")


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"hello", "no WAV or FLAC sound: 5 bytes that begin with 68 65 6c 6c 6f"),
        (WAV[:20], "no data chunk"),
        (WAV[:44], "the WAV file is cut: its header promises 16,000 bytes of sound, 0 are there"),
        (WAV[:-1], "the WAV file is cut"),
        (with_bytes(WAV, DATA + 4, bytes(4)), "0.000 s long; at least 0.1 s"),
        (sound_file(np.zeros(0)), "0.000 s long; at least 0.1 s"),
        (sound_file(tone(440, 0.01)), "0.010 s long; at least 0.1 s"),
        (with_bytes(WAV, 22, [0, 0]), "broken: Channel count is zero"),
        (with_bytes(WAV, 22, [65, 0]), "65 channels; 1–64"),
        (with_bytes(WAV, 24, bytes(4)), "broken"),
        (with_bytes(WAV, 24, (999).to_bytes(4, "little")), "999 samples a second; 1,000–768,000"),
        (with_bytes(WAV, 24, b"\xff\xff\xff\x7f"), "2,147,483,647 samples a second"),
        (FLAC[:60], "broken"),
        (FLAC[:-2000], "broken"),
        (with_flac_length(FLAC, 0), "does not say how long it is"),
        (with_flac_length(FLAC, 9_000), "broken"),
        (with_bytes(FLAC, 5000, bytes(200)), "broken"),
        (sound_file(np.full(8000, np.nan), subtype="FLOAT"), "no sound (nan)"),
        (sound_file(np.full(8000, -np.inf), subtype="DOUBLE"), "no sound (inf)"),
        (sound_file(np.full(8000, 1e300), subtype="DOUBLE"), "no sound (inf)"),
        (sound_file(np.full(8000, 1e30), subtype="FLOAT"), "no sound (1.0"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(data: bytes, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        decode_audio(data)

    assert says in str(refused.value)
    assert refused.value.status == 400
    assert "object at" not in str(refused.value)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"ID3\x04" + bytes(100), "MP3"),
        (b"OggS" + bytes(100), "Ogg"),
        (b"\x00\x00\x00\x20ftypM4A ", "MP4"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "WebP"),
        (b"\x89PNG\r\n\x1a\n", "PNG"),
        (sound_file(tone(440, 0.5), kind="AIFF"), "AIFF"),
        (sound_file(tone(440, 0.5), kind="RF64"), "RF64"),
        (sound_file(tone(440, 0.5), subtype="MS_ADPCM"), "MS_ADPCM in WAV"),
    ],
)
def test_another_kind_of_file_is_named(data: bytes, says: str) -> None:
    with pytest.raises(UnsupportedMedia, match=says):
        decode_audio(data)


def test_a_sound_over_the_limit_is_refused_by_its_header() -> None:
    with pytest.raises(TooLarge, match=r"0\.5 s long; at most 0\.4 s"):
        decode_audio(WAV, max_seconds=0.4)


def test_hours_of_silence_in_a_small_file_cost_no_memory() -> None:
    hours = sound_file(np.zeros(3 * 3600 * 8000, np.int16), rate_hz=8_000, kind="FLAC")
    assert len(hours) < 500_000

    tracemalloc.start()
    with pytest.raises(TooLarge, match=r"10800\.0 s long"):
        decode_audio(hours)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak_bytes < 1_000_000


def test_a_header_that_lies_about_the_length_does_not_open_the_way_for_the_rest() -> None:
    hour = sound_file(np.zeros(3600 * 8000, np.int16), rate_hz=8_000, kind="FLAC")

    assert decode_audio(with_flac_length(hour, 8_000)).seconds == 1.0


def test_too_many_samples_on_too_many_channels_are_refused() -> None:
    with pytest.raises(TooLarge, match="on each of 1 channels"):
        decode_audio(with_flac_length(FLAC, MAX_SAMPLES + 1), max_seconds=1e9)


EDITS = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)), min_size=1, max_size=6)


@given(st.sampled_from([WAV, FLAC]), EDITS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_a_header_says_the_answer_is_a_sound_or_a_reason(whole: bytes, edits: list[tuple[int, int]]) -> None:
    data = whole
    for place, value in edits:
        data = with_bytes(data, place, [value])
    try:
        found = decode_audio(data)
    except BadInput:
        return

    assert np.isfinite(found.samples).all()
    assert 0.09 < found.seconds <= 60.01


@given(st.binary(max_size=400))
@settings(max_examples=200, deadline=None)
def test_whatever_follows_a_magic_number_the_answer_is_a_reason(rest: bytes) -> None:
    for start in (b"fLaC", b"RIFF\xff\xff\x00\x00WAVE", WAV[:36]):
        with pytest.raises(BadInput):
            decode_audio(start + rest)
