from __future__ import annotations

from pathlib import Path

import pytest
from gshare.preload import cuda_at_import, preload_refusal


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("import torch\n\nGPU = torch.cuda.is_available()", [3]),
        ('import torch\nX = torch.zeros(1, device="cuda")\nY = X.cuda()', [2, 3]),
        ("class A:\n    here = torch.cuda.device_count()", [2]),
        ("def load():\n    return torch.cuda.is_available()\nlater = lambda: torch.cuda.init()", []),
        ("if True:\n    torch.cuda.init()", [2]),
        ("this is no python: cuda()", []),
        ("import torch.cuda", []),
    ],
)
def test_only_calls_that_run_at_import_are_found(tmp_path: Path, source: str, lines: list[int]) -> None:
    (tmp_path / "handler.py").write_text(source)

    found = list(cuda_at_import(tmp_path))

    assert [f"line {line}:" in text for line, text in zip(lines, found, strict=True)] == [True] * len(lines)


def test_the_refusal_names_the_line_and_the_fix(tmp_path: Path) -> None:
    (tmp_path / "function").mkdir()
    (tmp_path / "function" / "model.py").write_text("import torch\nGPU = torch.cuda.is_available()\n")
    (tmp_path / "function" / "handler.py").write_text("def handle(event, context): ...")

    refusal = preload_refusal({}, tmp_path)

    assert "turn preload off" in refusal
    assert "function/model.py, line 2: torch.cuda.is_available() runs at import; move it into load()" in refusal


def test_without_a_function_the_refusal_still_says_what_to_do(tmp_path: Path) -> None:
    assert preload_refusal({}, tmp_path).endswith("turn preload off (--preload, preload_app)")
