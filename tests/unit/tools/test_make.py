"""The Makefile and the script that finds its Python, as a user meets them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools.venv import ROOT

FIND_PYTHON = ROOT / "tools" / "find-python"


def fake_python(folder: Path, name: str, *, version: str, venv: bool = True) -> Path:
    """A shell script that answers find-python's three questions."""
    minor_ok = int(version.split(".")[1]) >= 11
    path = folder / name
    path.write_text(f"""#!/bin/sh
case "$2" in
*print*) echo {version} ;;
*exit*) exit {0 if minor_ok else 1} ;;
*ensurepip*) exit {0 if venv else 1} ;;
esac
""")
    path.chmod(0o755)
    return path


def find_python(**env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", str(FIND_PYTHON)], env=env, capture_output=True, text=True, check=False)


def make(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {name: text for name, text in os.environ.items() if name not in ("MAKEFLAGS", "FUNCTIONS")}
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(ROOT), *arguments],
        env=clean | env,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def shell_only(tmp_path: Path) -> Path:
    """A PATH without any Python, but with what the script itself calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "cat").symlink_to("/bin/cat")
    return folder


def test_a_newer_python_is_found_behind_one_that_is_too_old(shell_only: Path) -> None:
    fake_python(shell_only, "python3", version="3.9.2")
    newer = fake_python(shell_only, "python3.12", version="3.12.1")

    assert find_python(PATH=str(shell_only)).stdout.strip() == str(newer)


def test_without_a_usable_python_it_says_what_was_found_and_what_each_lacks(shell_only: Path) -> None:
    fake_python(shell_only, "python3", version="3.9.2")
    fake_python(shell_only, "python3.11", version="3.11.2", venv=False)

    result = find_python(PATH=str(shell_only))

    assert result.returncode == 1
    assert f"{shell_only}/python3 is 3.9.2: too old" in result.stderr
    assert f"{shell_only}/python3.11 is 3.11.2: cannot make virtual environments" in result.stderr
    assert "apt install python3.11-venv" in result.stderr


def test_without_any_python_it_says_none(shell_only: Path) -> None:
    result = find_python(PATH=str(shell_only))

    assert (result.returncode, result.stdout) == (1, "")
    assert "Found:\n  none" in result.stderr


def test_the_python_that_the_user_names_is_the_only_one_tried(shell_only: Path) -> None:
    fake_python(shell_only, "python3", version="3.12.1")
    old = fake_python(shell_only, "mine", version="3.10.0")

    result = find_python(PATH=str(shell_only), PYTHON=str(old))

    assert result.returncode == 1
    assert "3.10.0: too old" in result.stderr


def test_a_real_python_is_accepted() -> None:
    result = find_python(PATH=os.environ["PATH"], PYTHON=sys.executable)

    assert result.stdout.strip() == sys.executable


def test_help_lists_every_public_target() -> None:
    text = make("help").stdout

    for target in ("up", "down", "status", "logs", "test", "check", "fmt"):
        assert f"make {target}" in text


@pytest.mark.parametrize(("arguments", "env"), [(["FUNCTIONS=resnet50"], {}), ([], {"FUNCTIONS": "resnet50"})])
def test_up_passes_the_chosen_functions_on_in_either_spelling(arguments: list[str], env: dict[str, str]) -> None:
    assert "gshare up --functions 'resnet50'" in make("--dry-run", "up", *arguments, **env).stdout


def test_up_without_a_choice_deploys_all() -> None:
    assert "--functions" not in make("--dry-run", "up").stdout
