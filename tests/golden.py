"""What the six functions answer to the sample beside each, with small models of seeded weights.

`python -m tests.golden` records it anew, which is due only when a function, its sample or its small model changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.served_app import served
from tests.tiny_functions import TINY_FUNCTIONS, TinyFunction

RECORDED = Path(__file__).parent / "data" / "golden.json"


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


def leaves(answer: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in an answer that is no list and no object, with its place."""
    inner: dict[Any, Any] = answer if isinstance(answer, dict) else {}
    if isinstance(answer, list):
        inner = dict(enumerate(answer))
    for key, value in inner.items():
        yield from leaves(value, f"{place}.{key}")
    if not inner:
        yield place, answer


def main() -> None:
    answers = {function.name: golden_answer(function) for function in TINY_FUNCTIONS}
    RECORDED.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
