"""Names of a ViT's parameters: those in published files, and those that this release of transformers gives them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

_BLOCK = re.compile(r"vit\.encoder\.layer\.(\d+)\.(.+)\.(weight|bias)")
_PARTS = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
}


def from_published(own: Collection[str]) -> Callable[[str], str]:
    """Translates a published name to the module's; names that are the module's `own` stay as they are."""

    def translate(name: str) -> str:
        match = _BLOCK.fullmatch(name)
        if name in own or match is None:
            return name
        layer, part, kind = match.groups()
        return f"vit.layers.{layer}.{_PARTS.get(part, part)}.{kind}"

    return translate
