"""C31 (HAS-GPU guesses the model from the function's name): a replica is what its weights and code are."""

from __future__ import annotations

import json
from typing import Any

from tests.served_app import FUNCTIONS, served

RESNET = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "num_labels": 4}
BERT = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}


def status(function: str, config: dict[str, Any], *, name: str, revision: str) -> dict[str, Any]:
    env = {"MODEL_CONFIG": json.dumps(config), "GSHARE_FUNCTION": f"{name}.fn", "GSHARE_REVISION": revision}
    with served(FUNCTIONS / function, env) as client:
        found: dict[str, Any] = client.get("/_/status").get_json()
    return found


def test_a_function_named_albert_that_serves_a_resnet_is_a_resnet() -> None:
    misnamed = status("resnet50", RESNET, name="albert-x", revision="r1")
    named = status("resnet50", RESNET, name="resnet50", revision="r1")
    bert = status("bert", BERT, name="bert", revision="r2")

    assert misnamed["function"] == "albert-x.fn"
    assert misnamed["weights"]["digest"] == named["weights"]["digest"]
    assert misnamed["weights"]["digest"].startswith("sha256:")
    assert misnamed["weights"]["digest"] != bert["weights"]["digest"]
    assert misnamed["revision"] == named["revision"] != bert["revision"]
