"""C16 (kaldi-serve 12, inferspeech 4, whisper-asr-webservice 56, masr 54, GigaAM 43): a wrong rate, stereo, an empty
or too short sound made a crash or nonsense. However it was recorded, one sentence is the same words."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from flask.testing import FlaskClient

from tests.served_app import FUNCTIONS, served
from tests.sounds import sound_file, tone
from tests.tiny_rnnt import Melody, melody

RATES_HZ = (8_000, 16_000, 22_050, 44_100, 48_000)
RECORDINGS = (
    ("WAV", "PCM_U8", 1),
    ("WAV", "PCM_16", 2),
    ("WAV", "PCM_24", 1),
    ("WAV", "PCM_32", 2),
    ("WAV", "FLOAT", 1),
    ("WAV", "DOUBLE", 2),
    ("FLAC", "PCM_S8", 1),
    ("FLAC", "PCM_24", 2),
)
"""Container, width, channels."""


@pytest.fixture(scope="module")
def listener(tones_weights: Path) -> Iterator[FlaskClient]:
    """rnnt with a model that learned to write melodies down."""
    env = {"MODEL_WEIGHTS": "file:tones", "GSHARE_WEIGHTS_ROOT": str(tones_weights.parent)}
    with served(FUNCTIONS / "rnnt", env) as client:
        yield client


def sentence(rate_hz: int) -> Melody:
    """Always the same, recorded at this rate."""
    return melody(random.Random(16), shortest=6, longest=6, rate_hz=rate_hz)


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_a_sentence_is_the_same_words_at_every_rate_width_and_number_of_channels(
    listener: FlaskClient, rate_hz: int
) -> None:
    spoken = sentence(rate_hz)
    for kind, subtype, channels in RECORDINGS:
        file = sound_file(spoken.samples, rate_hz=rate_hz, kind=kind, subtype=subtype, channels=channels)
        heard = listener.post("/", data=file, content_type="audio/wav")
        assert heard.status_code == 200, heard.text
        assert (heard.get_json()["text"], heard.get_json()["sample_rate"]) == (spoken.text, rate_hz), subtype
        assert "note" not in heard.get_json()


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_where_the_content_type_says_another_rate_the_files_header_holds_and_the_reply_notes_it(
    listener: FlaskClient, rate_hz: int
) -> None:
    spoken = sentence(rate_hz)
    file = sound_file(spoken.samples, rate_hz=rate_hz)

    heard = listener.post("/", data=file, content_type="audio/l16; rate=11025").get_json()

    assert (heard["text"], heard["sample_rate"]) == (spoken.text, rate_hz)
    assert heard["note"] == f"Content-Type says 11025 Hz, the file's header {rate_hz}; the header was used"


@pytest.mark.parametrize("rate_hz", RATES_HZ)
@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_16"), ("WAV", "FLOAT"), ("FLAC", "PCM_16")])
def test_silence_is_an_empty_transcript(listener: FlaskClient, kind: str, subtype: str, rate_hz: int) -> None:
    file = sound_file(np.zeros(rate_hz), rate_hz=rate_hz, kind=kind, subtype=subtype)

    heard = listener.post("/", data=file)

    assert (heard.status_code, heard.get_json()["text"], heard.get_json()["seconds"]) == (200, "", 1.0)


WHOLE = sound_file(tone(500, 1.0))
NO_SOUNDS = {
    "no bytes": (b"", "the body is empty"),
    "no samples": (sound_file(np.zeros(0)), "0.000 s long; at least 0.1 s"),
    "header only, FLAC": (sound_file(tone(500, 1.0), kind="FLAC")[:42], "the sound file is broken"),
    "header only": (WHOLE[:44], "the WAV file is cut"),
    "half a header": (WHOLE[:20], "no data chunk"),
    "10 ms": (sound_file(tone(500, 0.01)), "0.010 s long; at least 0.1 s"),
    "10 ms at 48 kHz": (sound_file(tone(500, 0.01, rate_hz=48_000), rate_hz=48_000), "0.010 s long"),
    "all NaN": (sound_file(np.full(16_000, np.nan), subtype="FLOAT"), "samples that are no sound (nan)"),
    "one NaN": (sound_file(np.r_[tone(500, 1.0), np.nan], subtype="DOUBLE"), "samples that are no sound (nan)"),
    "infinite": (sound_file(np.full(16_000, np.inf), subtype="FLOAT"), "samples that are no sound (inf)"),
}


@pytest.mark.parametrize("what", NO_SOUNDS)
def test_what_holds_no_sound_is_refused_with_the_reason_and_the_next_sentence_is_heard(
    listener: FlaskClient, what: str
) -> None:
    file, says = NO_SOUNDS[what]
    spoken = sentence(16_000)

    refused = listener.post("/", data=file, content_type="audio/wav")
    heard = listener.post("/", data=sound_file(spoken.samples), content_type="audio/wav")

    assert refused.status_code == 400
    assert refused.get_json()["error"]["code"] == "bad_input"
    assert says in refused.get_json()["error"]["message"]
    assert (heard.status_code, heard.get_json()["text"]) == (200, spoken.text)
