from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from gshare.entry import find_function, import_entry
from gshare.errors import FunctionError
from gshare.handler import Handler

HOOKS = """
    def load(self, context): ...
    def example(self): ...
    def decode(self, request): ...
    def forward(self, items): ...
"""
HANDLER = "from gshare.handler import Handler as Base\n"


@pytest.fixture(autouse=True)
def _no_function_left_behind() -> Iterator[None]:
    yield
    for name in [name for name in sys.modules if name.split(".")[0] == "function"]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    function = tmp_path / "function"
    function.mkdir()
    return function


def write(folder: Path, code: str) -> Path:
    (folder / "handler.py").write_text(dedent(code))
    return folder


def test_the_function_on_pythonpath_comes_before_the_templates_starter(tmp_path: Path) -> None:
    for name in ("code", "template"):
        (tmp_path / name / "function").mkdir(parents=True)
        write(tmp_path / name / "function", "")
    env = {"PYTHONPATH": os.pathsep.join(("", str(tmp_path / "other"), str(tmp_path / "code")))}

    assert find_function(env, tmp_path / "template") == tmp_path / "code" / "function"
    assert find_function({}, tmp_path / "template") == tmp_path / "template" / "function"


def test_no_function_anywhere_is_an_error_that_says_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(FunctionError, match=r"no function/handler\.py"):
        find_function({}, tmp_path)


def test_a_plain_handle_is_found(folder: Path) -> None:
    entry = import_entry(write(folder, "def handle(event, context): return 'plain'"))

    assert not isinstance(entry, type)
    assert entry(None, None) == "plain"


def test_the_only_handler_class_is_found_whatever_its_name_and_before_a_handle(folder: Path) -> None:
    entry = import_entry(write(folder, HANDLER + "class Mine(Base):" + HOOKS + "def handle(event, context): ..."))

    assert isinstance(entry, type)
    assert issubclass(entry, Handler)
    assert entry.__name__ == "Mine"


def test_of_several_classes_the_one_named_handler_is_served(folder: Path) -> None:
    code = HANDLER + "class Shared(Base):" + HOOKS + "class Handler(Shared): ...\n"

    entry = import_entry(write(folder, code))

    assert isinstance(entry, type)
    assert entry.__name__ == "Handler"


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (HANDLER + "class A(Base): ...\nclass B(Base): ...", "several handler classes .A, B."),
        (HANDLER + "class A(Base):\n    def load(self, context): ...", "class A .* lacks: decode, example, forward"),
        ("x = 1", "neither a subclass of gshare.handler.Handler nor a function handle"),
        (
            "import nonsense_that_is_not_there",
            r"ModuleNotFoundError: .* \(function/handler.py, line 1\)",
        ),
        ("x = 1\ndef f(:", r"SyntaxError: .* \(function/handler.py, line 2\)"),
        ("import sys\nsys.exit('no')", r"SystemExit: no \(function/handler.py, line 2\)"),
        ("\n\n1 / 0", r"ZeroDivisionError: division by zero \(function/handler.py, line 3\)"),
    ],
)
def test_code_that_cannot_be_served_is_refused_with_the_reason(folder: Path, code: str, says: str) -> None:
    with pytest.raises(FunctionError, match=says):
        import_entry(write(folder, code))


def test_a_function_may_have_modules_of_its_own(folder: Path) -> None:
    (folder / "helper.py").write_text("ANSWER = 42")
    code = """
        from .helper import ANSWER
        from function.helper import ANSWER as SAME
        def handle(event, context): return ANSWER + SAME
    """
    entry = import_entry(write(folder, code))

    assert not isinstance(entry, type)
    assert entry(None, None) == 84


def test_another_function_folder_on_the_path_does_not_shadow_the_chosen_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "elsewhere" / "function"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    write(other, "def handle(event, context): return 'other'")
    monkeypatch.syspath_prepend(str(other.parent))

    entry = import_entry(write(folder, "def handle(event, context): return 'chosen'"))

    assert not isinstance(entry, type)
    assert entry(None, None) == "chosen"


def test_a_package_with_an_init_runs_it(folder: Path) -> None:
    (folder / "__init__.py").write_text("PREPARED = True")
    entry = import_entry(write(folder, "from function import PREPARED\ndef handle(event, context): return PREPARED"))

    assert not isinstance(entry, type)
    assert entry(None, None) is True
