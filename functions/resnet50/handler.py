"""ResNet: a picture in, the most likely ImageNet labels out."""

from __future__ import annotations

from gshare.context import Context
from gshare.image_classifier import Classifier, ImageClassifier
from gshare.inputs.image_settings import CONVNEXT, FILE, processor_settings
from gshare.variants import check_variant, variant_config
from transformers import ResNetConfig, ResNetForImageClassification

IMAGENET_LABELS = 1000
VARIANTS = {"50": {"depths": (3, 4, 6, 3)}, "152": {"depths": (3, 8, 36, 3)}}
CONVOLUTIONS = {"basic": 2, "bottleneck": 3}


class ResNet(ImageClassifier):
    """microsoft/resnet-50 and its like; `random:` weights have the same shape and labels without a name."""

    def classifier(self, context: Context) -> Classifier:
        config = ResNetConfig(**variant_config(context, VARIANTS, {"num_labels": IMAGENET_LABELS}))
        check_variant(context, VARIANTS, config)
        preprocessing = processor_settings(context.weights.json(FILE), default=CONVNEXT)
        model = context.build(lambda: ResNetForImageClassification(config))
        return Classifier(name_of(config), lambda pixels: model(pixels).logits, preprocessing, config.id2label)


def name_of(config: ResNetConfig) -> str:
    """`resnet` and the number of its layers, as the architecture's authors count them."""
    return f"resnet{sum(config.depths) * CONVOLUTIONS[config.layer_type] + 2}"
