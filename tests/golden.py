"""What the six functions answer to the sample beside each, with small models of seeded weights.

`python -m tests.golden` records answers that were not recorded yet, which is due only when a function, its sample or
its small model changes; then delete the old ones before. A function has several where versions of torch draw other
weights from the same seed: vit has, since torch 2.13 draws truncated normal numbers in another way than 2.11.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.served_app import served
from tests.tiny_functions import TINY_FUNCTIONS, TinyFunction

RECORDED = Path(__file__).parent / "data" / "golden.json"
TOLERANCE = 1e-3
"""Of what a number is: instruction sets and versions add up in different orders."""


def sample(function: TinyFunction) -> bytes:
    """The golden input: the file that lies beside the function for its users."""
    (path,) = function.folder.glob("sample.*")
    return path.read_bytes()


def golden_answer(function: TinyFunction) -> Any:
    """What it answers now, from a fresh start with nothing cached."""
    with served(function.folder, function.env()) as client:
        response = client.post("/", data=sample(function))
        assert response.status_code == 200, response.text
        return response.get_json()


def recorded_answers() -> dict[str, list[Any]]:
    """By function, the answers that were recorded."""
    answers: dict[str, list[Any]] = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    return answers


def agree(found: Any, recorded: Any) -> bool:
    """Whether two answers are the same but for the last digits of their numbers."""
    one, other = dict(_leaves(found)), dict(_leaves(recorded))
    return one.keys() == other.keys() and all(_same(one[place], other[place]) for place in one)


def _same(found: Any, recorded: Any) -> bool:
    if isinstance(recorded, float):
        return isinstance(found, float) and math.isclose(found, recorded, rel_tol=TOLERANCE)
    return bool(found == recorded)


def _leaves(answer: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in an answer that is no list and no object, with its place."""
    inner: dict[Any, Any] = answer if isinstance(answer, dict) else {}
    if isinstance(answer, list):
        inner = dict(enumerate(answer))
    for key, value in inner.items():
        yield from _leaves(value, f"{place}.{key}")
    if not inner:
        yield place, answer


def main() -> None:
    answers = recorded_answers()
    for function in TINY_FUNCTIONS:
        known, found = answers.setdefault(function.name, []), golden_answer(function)
        if not any(agree(found, one) for one in known):
            known.append(found)
    RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
