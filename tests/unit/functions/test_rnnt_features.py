"""The features are those that the published RNN-T weights were trained on: compared with librosa, step by step."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from librosa import stft
from librosa.filters import mel as mel_filters
from numpy.typing import NDArray

from functions.rnnt.features import FEATURES, LogMel, frame_count, splice
from tests.sounds import Samples, noise, tone

TALK = np.concatenate([tone(300, 0.3), noise(0.2) * 0.1, tone(1200, 0.413), noise(0.1)]) + noise(1.013, seed=1) * 0.01
SPEECH = TALK.astype(np.float32).astype(np.float64)
HEAR = LogMel(torch.device("cpu"))


def published_log_mel(samples: Samples) -> NDArray[np.float64]:
    """Mels × frames by librosa: pre-emphasis, centred STFT with a symmetric Hann window of 20 ms, Slaney's mels."""
    emphasised = np.append(samples[0], samples[1:] - 0.97 * samples[:-1])
    spectrum = stft(
        emphasised, n_fft=512, hop_length=160, win_length=320, window=np.hanning(320), center=True, pad_mode="reflect"
    )
    mel = mel_filters(sr=16_000, n_fft=512, n_mels=80, fmin=0, fmax=8_000)
    return np.asarray(np.log(mel @ (np.abs(spectrum) ** 2 + 1e-5**2) + 1e-20))


def published_features(samples: Samples) -> NDArray[np.float64]:
    """Frames × 240: three frames in one, normalised over the frames that count."""
    frames = published_log_mel(samples)
    later = [np.pad(frames[:, i:], ((0, 0), (0, i))) for i in range(3)]
    count = math.ceil(math.ceil(len(samples) / 160) / 3)
    spliced = np.concatenate(later)[:, ::3][:, :count]
    mean, std = spliced.mean(1, keepdims=True), spliced.std(1, ddof=1, keepdims=True)
    return np.asarray((spliced - mean) / (std + 1e-5)).T


def heard(samples: Samples) -> torch.Tensor:
    return torch.from_numpy(samples.astype(np.float32))


def test_log_mel_equals_librosa() -> None:
    found = HEAR.log_mel(heard(SPEECH))

    np.testing.assert_allclose(found.numpy().T, published_log_mel(SPEECH), atol=1e-4)


@pytest.mark.parametrize("samples", [1600, 4799, 4800, 4801, 16_000, len(SPEECH)])
def test_features_equal_librosa_with_splicing_and_normalisation(samples: int) -> None:
    found = HEAR(heard(SPEECH[:samples]))

    assert found.shape == (frame_count(samples), FEATURES)
    np.testing.assert_allclose(found.numpy(), published_features(SPEECH[:samples]), atol=1e-4)


def test_same_sound_same_features_to_the_last_bit() -> None:
    assert torch.equal(HEAR(heard(SPEECH)), HEAR(heard(SPEECH)))


def test_each_feature_has_mean_0_and_deviation_1() -> None:
    found = HEAR(heard(SPEECH))

    torch.testing.assert_close(found.mean(0), torch.zeros(FEATURES), atol=1e-4, rtol=0)
    torch.testing.assert_close(found.std(0), torch.ones(FEATURES), atol=1e-3, rtol=0)


def test_loudness_does_not_matter() -> None:
    torch.testing.assert_close(HEAR(heard(SPEECH)), HEAR(heard(SPEECH * 0.5)), atol=1e-2, rtol=0)


def test_a_sound_that_never_changes_gives_finite_features() -> None:
    assert HEAR(torch.full((16_000,), 0.25)).isfinite().all()


def test_every_third_frame_carries_the_two_after_it_and_zeros_behind_the_end() -> None:
    frames = torch.tensor([[1.0], [2.0], [3.0], [4.0]])

    assert splice(frames).tolist() == [[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]
