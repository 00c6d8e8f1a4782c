"""The page on the six functions names what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "functions.md").read_text()
FUNCTIONS = sorted(path.parent.name for path in (ROOT / "functions").glob("*/handler.py"))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_its_place_and_a_sample(name: str) -> None:
    headings = " ".join(re.findall("^## .*", PAGE, re.MULTILINE))

    assert re.search(rf"\b{name}\b", headings)
    assert list((ROOT / "functions" / name).glob("sample.*"))


def test_every_published_weight_that_stack_yml_offers_is_named() -> None:
    offered = re.findall(r"fastgshare/weights: (hf:\S+)", (ROOT / "stack.yml").read_text())

    assert len(offered) >= 4
    assert [weights for weights in offered if weights not in PAGE] == []


@pytest.mark.parametrize("name", ["resnet50", "resnext", "vit"])
def test_the_variants_are_those_of_the_source(name: str) -> None:
    source = (ROOT / "functions" / name / "handler.py").read_text()
    variants = re.findall(r'"(\w+)": \{', source.partition("VARIANTS = {")[2])
    [row] = re.findall(rf"^\| {name} \| (.*?) \|", PAGE, re.MULTILINE)

    assert len(variants) == 2
    assert re.findall(r"`(\w+)` \(", row) == variants


def test_settings_of_the_environment_are_those_that_functions_read() -> None:
    sources = [*ROOT.glob("functions/*/*.py"), *ROOT.glob("template/python3-gshare/gshare/*.py")]
    text = "\n".join(path.read_text() for path in sources)
    named = re.findall(r"^\| `([A-Z_]+)` \|", PAGE, re.MULTILINE)

    assert named == ["MODEL_VARIANT", "MODEL_CONFIG", "MAX_AUDIO_SECONDS"]
    assert all(f'"{name}"' in text for name in named)
