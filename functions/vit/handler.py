"""ViT: a picture in, the most likely ImageNet labels out."""

from __future__ import annotations

from gshare.context import Context
from gshare.errors import WeightsError
from gshare.image_classifier import Classifier, ImageClassifier
from gshare.inputs.image_settings import FILE, VIT, processor_settings
from gshare.modules import empty_module
from gshare.variants import check_variant, variant_config, variant_name
from transformers import ViTConfig, ViTForImageClassification

from .names import from_published

IMAGENET_LABELS = 1000
VARIANTS = {
    "base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "patch_size": 16,
    },
    "huge": {
        "hidden_size": 1280,
        "num_hidden_layers": 32,
        "num_attention_heads": 16,
        "intermediate_size": 5120,
        "patch_size": 14,
    },
}


class ViT(ImageClassifier):
    """google/vit-base-patch16-224 and its like; `random:` weights have the same shape and labels without a name."""

    def classifier(self, context: Context) -> Classifier:
        config = ViTConfig(**variant_config(context, VARIANTS, {"num_labels": IMAGENET_LABELS}))
        check_variant(context, VARIANTS, config)
        preprocessing = processor_settings(context.weights.json(FILE), default=VIT, edge=config.image_size)
        if preprocessing.edge != config.image_size:
            raise WeightsError(
                f"{FILE} makes pictures of {preprocessing.edge} pixels, the model takes {config.image_size}"
            )
        model = _build(context, config)
        return Classifier(_name(config), lambda pixels: model(pixels).logits, preprocessing, config.id2label)


def _build(context: Context, config: ViTConfig) -> ViTForImageClassification:
    def make() -> ViTForImageClassification:
        return ViTForImageClassification(config)

    return context.build(make, rename=from_published(empty_module(make).state_dict()))


def _name(config: ViTConfig) -> str:
    variant = variant_name(VARIANTS, config)
    return f"vit-{variant}" if variant else "vit"
