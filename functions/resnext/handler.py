"""ResNeXt: a picture in, the most likely ImageNet labels out."""

from __future__ import annotations

from gshare.context import Context
from gshare.image_classifier import Classifier, ImageClassifier
from gshare.variants import check_variant, variant_config

from .checkpoint import DEPTHS, describe
from .model import ResNext

VARIANTS = {
    "50": {"depths": DEPTHS["50"], "groups": 32, "width_per_group": 4},
    "101": {"depths": DEPTHS["101"], "groups": 32, "width_per_group": 8},
}


class ResNextClassifier(ImageClassifier):
    """timm's resnext50_32x4d and its like; `random:` weights have the same shape and labels without a name."""

    def classifier(self, context: Context) -> Classifier:
        settings = variant_config(context, VARIANTS, {})
        told = describe(settings, weights=context.weights.text, is_random=context.weights.is_random)
        check_variant(context, VARIANTS, told.model)
        model = context.build(lambda: ResNext(told.model))
        return Classifier(told.model.name, model, told.preprocessing, told.labels)
