"""ResNeXt, with the parameter names of torchvision and timm, so that their published files load as they are."""

from __future__ import annotations

from typing import Annotated

import msgspec
import torch
from msgspec import Meta
from torch import nn

EXPANSION = 4
"""A block gives so many times the channels that its stage is counted in."""
STEM_CHANNELS = 64
RESIDUAL_SCALE = 0.25
"""Of a fresh block's own part: 33 of them in a row then keep the sum at the size of one."""

Positive = Annotated[int, Meta(ge=1)]


class ResNextConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Sizes of a ResNeXt; the default is ResNeXt-50 32x4d."""

    depths: Annotated[tuple[Positive, ...], Meta(min_length=1, max_length=5)] = (3, 4, 6, 3)
    """Blocks of each stage; every stage after the first halves the picture and doubles the channels."""
    groups: Positive = 32
    width_per_group: Positive = 4
    """Channels of one group in the first stage."""
    num_labels: Positive = 1000

    @property
    def name(self) -> str:
        """As torchvision and timm call it, e.g. `resnext50_32x4d`."""
        return f"resnext{3 * sum(self.depths) + 2}_{self.groups}x{self.width_per_group}d"


class Bottleneck(nn.Module):
    """Narrow, convolve in groups, widen, and add what came in."""

    def __init__(self, inputs: int, outputs: int, *, width: int, groups: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride, padding=1, groups=groups, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, outputs, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """As many pictures, `outputs` channels, sides divided by the stride."""
        found = self.relu(self.bn1(self.conv1(inputs)))
        found = self.relu(self.bn2(self.conv2(found)))
        found = self.bn3(self.conv3(found))
        shortcut = inputs if self.downsample is None else self.downsample(inputs)
        return torch.relu(found + shortcut)


class ResNext(nn.Module):
    """Pictures × 3 × height × width in, pictures × labels out (logits)."""

    def __init__(self, config: ResNextConfig) -> None:
        super().__init__()
        self.config = config
        self.conv1 = nn.Conv2d(3, STEM_CHANNELS, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(STEM_CHANNELS)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        channels = STEM_CHANNELS
        for stage in range(len(config.depths)):
            self.add_module(f"layer{stage + 1}", _stage(config, stage, channels))
            channels = STEM_CHANNELS * EXPANSION * 2**stage
        self.fc = nn.Linear(channels, config.num_labels)
        self.apply(_initialise)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Logits of each picture."""
        found = self.maxpool(self.relu(self.bn1(self.conv1(pixels))))
        for stage in range(len(self.config.depths)):
            found = self.get_submodule(f"layer{stage + 1}")(found)
        return self.fc(found.mean((2, 3)))  # type: ignore[no-any-return]


def _stage(config: ResNextConfig, stage: int, inputs: int) -> nn.Sequential:
    width = config.groups * config.width_per_group * 2**stage
    outputs = STEM_CHANNELS * EXPANSION * 2**stage
    blocks = [
        Bottleneck(
            outputs if block else inputs,
            outputs,
            width=width,
            groups=config.groups,
            stride=2 if stage and not block else 1,
        )
        for block in range(config.depths[stage])
    ]
    return nn.Sequential(*blocks)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential | None:
    """Brings what came in to the shape of what goes out; None where it has that."""
    if inputs == outputs and stride == 1:
        return None
    return nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))


def _initialise(module: nn.Module) -> None:
    """For `random:` weights: sums that neither die out nor blow up on their way through the layers."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    if isinstance(module, Bottleneck):
        nn.init.constant_(module.bn3.weight, RESIDUAL_SCALE)
