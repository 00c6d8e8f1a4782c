import json

import msgspec
import pytest

from bench.figures import Bound, Wish, figure
from bench.machine import Machine, cpu_model, this_machine
from bench.report import Report, to_json, to_markdown

MACHINE = Machine(cpu="Some CPU", cores=2, gpus=(), system="Linux 6.1 x86_64", python="3.12.1")


@pytest.fixture
def report() -> Report:
    return Report(
        benchmark="gateway",
        description="with and without",
        command="gshare bench gateway",
        measured_at="2026-01-01T00:00:00+00:00",
        machine=MACHINE,
        figures=(
            figure("rate", [1234.5, 1200.0, 1300.0], unit="requests/s", definition="answers ÷ duration"),
            figure("added", [1.5], unit="ms", definition="a - b", bound=Bound(Wish.AT_MOST, 1.0)),
        ),
    )


def test_json_carries_every_figure_with_definition_bound_and_verdict(report: Report) -> None:
    read = json.loads(to_json(report))

    assert read["machine"]["cpu"] == "Some CPU"
    assert read["figures"][0]["value"] == 1234.5
    assert read["figures"][0]["met"] is None
    assert read["figures"][1]["bound"] == {"wish": "at most", "value": 1.0}
    assert read["figures"][1]["met"] is False


def test_markdown_names_the_machine_the_command_the_spread_and_what_is_not_met(report: Report) -> None:
    text = to_markdown(report)

    assert "`gshare bench gateway` on Some CPU (2 cores), no GPU, Linux 6.1 x86_64, Python 3.12.1." in text
    assert "| rate | 1234 requests/s | 1200 … 1300 | 3 |  |" in text
    assert "| added | 1.5 ms | 1.5 … 1.5 | 1 | at most 1: NOT met |" in text
    assert "- rate: answers ÷ duration." in text


def test_figures_of_one_definition_are_explained_once(report: Report) -> None:
    other = figure("other rate", [1.0], unit="requests/s", definition="answers ÷ duration")

    text = to_markdown(msgspec.structs.replace(report, figures=(*report.figures, other)))

    assert "- rate; other rate: answers ÷ duration." in text


def test_gpus_are_part_of_the_title() -> None:
    machine = Machine(cpu="Some CPU", cores=16, gpus=("NVIDIA H200",), system="Linux", python="3.12.1")

    assert machine.title == "Some CPU (16 cores), NVIDIA H200, Linux, Python 3.12.1"


def test_the_cpu_is_named_as_the_kernel_names_it() -> None:
    assert cpu_model(["processor\t: 0", "model name\t: Tiny  CPU @ 1GHz"]) == "Tiny CPU @ 1GHz"


def test_a_kernel_that_names_no_cpu_leaves_its_architecture() -> None:
    assert cpu_model(["processor\t: 0", "CPU implementer\t: 0x41"])


def test_this_machine_has_a_cpu_and_cores() -> None:
    machine = this_machine()

    assert machine.cpu
    assert machine.cores >= 1
