import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from tools.venv import (
    CPU_BUILD,
    CUDA_BUILD,
    DEV_TOOLS,
    ROOT,
    Cost,
    InstallError,
    Stamp,
    available_memory_mb,
    cost_text,
    function_requirements,
    read_stamp,
    torch_requirements,
    update,
    wanted_stamp,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n')
    (tmp_path / "constraints.txt").write_text("torch==2.13.0\n")
    return tmp_path


def function(root: Path, name: str, *, requirements: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "handler.py").write_text("")
    (folder / "requirements.txt").write_text(requirements)
    return folder / "requirements.txt"


def test_an_environment_to_test_in_is_enough_to_serve_but_not_the_other_way_round() -> None:
    serve, test = Stamp("digest", "runtime", ""), Stamp("digest", "dev", "")

    assert test.covers(serve)
    assert not serve.covers(test)


def test_an_edited_pin_asks_for_a_new_installation(project: Path) -> None:
    before = wanted_stamp(project, "runtime", env={}, installed=None)

    (project / "constraints.txt").write_text("torch==2.14.0\n")

    assert not before.covers(wanted_stamp(project, "runtime", env={}, installed=before))


def test_a_torch_index_once_given_is_kept_until_another_is_given(project: Path) -> None:
    first = wanted_stamp(project, "runtime", env={"GSHARE_TORCH_INDEX": "file:///cu126"}, installed=None)

    later = wanted_stamp(project, "runtime", env={}, installed=first)
    other = wanted_stamp(project, "runtime", env={"GSHARE_TORCH_INDEX": "file:///cpu"}, installed=first)

    assert first.covers(later)
    assert not first.covers(other)


def test_requirements_of_functions_count_and_comments_do_not(project: Path) -> None:
    wanted = function(project / "functions", "tagger", requirements="# tokens\nsentencepiece>=0.2\n")
    function(project / "functions", "plain", requirements="# nothing beyond the runtime\n\n")
    (project / "template").mkdir()
    (project / "template" / "requirements.txt").write_text("flask\n")

    assert function_requirements(project, {}) == [wanted]


def test_functions_are_looked_up_in_the_roots_of_the_setting(project: Path) -> None:
    mine = function(project / "elsewhere", "mine", requirements="regex\n")

    assert function_requirements(project, {"GSHARE_FUNCTIONS_PATH": f"{project}/elsewhere"}) == [mine]


@pytest.mark.parametrize("content", ["", "{", '{"inputs": "x"}', "[]"])
def test_a_stamp_that_was_cut_short_counts_as_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "installed.json").write_text(content)

    assert read_stamp(tmp_path / "installed.json") is None


def test_the_cost_is_said_before_with_what_the_machine_has() -> None:
    text = "\n".join(cost_text("runtime", torch_index="", free_mb=81_000, available_mb=16_000))

    assert "2.8 GB with torch's CUDA build, 0.3 GB with its CPU build" in text
    assert "free here: 81.0 GB" in text
    assert "available: 16.0 GB" in text
    assert "WARNING" not in text


@pytest.mark.parametrize(
    ("cost", "row"), [(CPU_BUILD, "CPU build"), (CUDA_BUILD, "CUDA 13 build"), (DEV_TOOLS, "`make test`")]
)
def test_the_page_on_dependencies_names_the_same_cost(cost: Cost, row: str) -> None:
    lines = (ROOT / "docs" / "dependencies.md").read_text().splitlines()
    (cells,) = [
        line.strip("|").split("|") for line in lines if line.startswith("| ") and row in line and " GB |" in line
    ]

    assert [float(cell.replace("GB", "")) * 1000 for cell in cells[1:]] == [cost.download_mb, cost.disk_mb]


@pytest.mark.parametrize(
    ("free_mb", "available_mb", "warning"),
    [
        (800, 16_000, "not enough disk for either build"),
        (3_000, 16_000, "not enough disk for torch's CUDA build; the CPU build fits"),
        (81_000, 1_000, "little memory: deploy fewer functions"),
    ],
)
def test_a_machine_that_is_too_small_is_warned(free_mb: int, available_mb: int, warning: str) -> None:
    assert warning in "\n".join(cost_text("runtime", torch_index="", free_mb=free_mb, available_mb=available_mb))


def test_available_memory_is_read_in_decimal_megabytes() -> None:
    assert available_memory_mb("MemTotal: 24 kB\nMemAvailable:   10000000 kB\n") == 10_240
    assert available_memory_mb("") == 0


def test_the_pin_of_torch_lies_in_the_range_of_the_project() -> None:
    pinned, in_range = torch_requirements(ROOT / "pyproject.toml", ROOT / "constraints.txt")

    assert pinned.startswith("torch==")
    assert in_range.startswith("torch>=")
    assert "+" not in pinned, "a local version would tie the pin to one build"


def test_nothing_is_installed_when_nothing_changed(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    stamp = wanted_stamp(project, "runtime", env={}, installed=None)
    (project / ".venv").mkdir()
    (project / ".venv" / "installed.json").write_text(json.dumps(asdict(stamp)))

    update(project, "runtime", env={})

    assert capfd.readouterr() == ("", "")
    assert not (project / ".venv" / "bin").exists()


def test_a_failing_pip_is_one_message_and_leaves_no_stamp(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """pip refuses at once: this project has a build backend that does not exist."""
    file = function(project / "functions", "tagger", requirements="sentencepiece>=0.2\n")
    (project / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "nothing_here"\n')

    with pytest.raises(InstallError, match="PIP_INDEX_URL") as failed:
        update(project, "runtime", env={})

    assert f"{file}: sentencepiece>=0.2" in str(failed.value), "a conflict must name the function"
    assert read_stamp(project / ".venv" / "installed.json") is None
    assert "download" in capfd.readouterr().err


def test_a_wrong_call_says_how_it_is_called() -> None:
    call = [sys.executable, "-m", "tools.venv", "everything"]

    result = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)

    assert result.returncode == 2
    assert "usage: python -m tools.venv runtime|dev" in result.stderr
