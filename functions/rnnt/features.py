"""What the RNN-T hears: normalised log-mel features of 16 kHz sound, three frames of 10 ms in one.

The numbers are those of MLPerf Inference's speech benchmark; with others its published weights would be useless.
"""

from __future__ import annotations

import math

import torch
from gshare.inputs.audio import SAMPLE_RATE_HZ
from torch.nn.functional import pad
from transformers.audio_utils import mel_filter_bank

MELS = 80
SPLICE = 3
FEATURES = MELS * SPLICE
HOP = SAMPLE_RATE_HZ // 100
WINDOW = SAMPLE_RATE_HZ // 50
FFT = 512
PRE_EMPHASIS = 0.97
DITHER = 1e-5
LOG_FLOOR = 1e-20
STD_FLOOR = 1e-5


class LogMel:
    """Turns sound into features on one device. Sound must be at least 2 · SPLICE · HOP samples long (60 ms)."""

    def __init__(self, device: torch.device) -> None:
        bank = mel_filter_bank(
            num_frequency_bins=FFT // 2 + 1,
            num_mel_filters=MELS,
            min_frequency=0.0,
            max_frequency=SAMPLE_RATE_HZ / 2,
            sampling_rate=SAMPLE_RATE_HZ,
            norm="slaney",
            mel_scale="slaney",
        )
        self._mel = torch.from_numpy(bank).to(device)
        self._window = torch.hann_window(WINDOW, periodic=False, dtype=torch.float64, device=device)

    def __call__(self, samples: torch.Tensor) -> torch.Tensor:
        """Frames × FEATURES, each feature with mean 0 and deviation 1 over the utterance."""
        spliced = splice(self.log_mel(samples))[: frame_count(len(samples))]
        return ((spliced - spliced.mean(0)) / (spliced.std(0) + STD_FLOOR)).float()

    def log_mel(self, samples: torch.Tensor) -> torch.Tensor:
        """Frames of 10 ms × MELS: logarithm of the power in each mel band.

        In double precision: quiet bands beside loud ones would drown in the rounding errors of a 32-bit transform.
        """
        samples = samples.double()
        emphasised = torch.cat([samples[:1], samples[1:] - PRE_EMPHASIS * samples[:-1]])
        spectrum = torch.stft(
            emphasised, FFT, hop_length=HOP, win_length=WINDOW, window=self._window, center=True, return_complex=True
        )
        # The dither is the expected power of the noise that would otherwise be added: same input, same output.
        power = torch.view_as_real(spectrum).square().sum(-1) + DITHER**2
        return torch.log(power.T @ self._mel + LOG_FLOOR)


def splice(frames: torch.Tensor) -> torch.Tensor:
    """Every third frame with the two after it in one row; behind the end there are zeros."""
    padded = pad(frames, (0, 0, 0, SPLICE - 1))
    return torch.cat([padded[i : i + len(frames)] for i in range(SPLICE)], dim=1)[::SPLICE]


def frame_count(samples: int) -> int:
    """Frames of features that so many samples give."""
    return math.ceil(math.ceil(samples / HOP) / SPLICE)
