from dataclasses import replace

import pytest

from gateway_plugin.node.diagnosis import Facts, Finding, Gpu, Level, MpsFact, Torch, examine, runs_on

V100 = Gpu("GPU-v100", "Tesla V100-SXM2-16GB", (7, 0))
H200 = Gpu("GPU-h200", "NVIDIA H200", (9, 0))
CUDA_13 = Torch("2.13.0", "13.0", True, ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"))
CUDA_12_6 = Torch("2.11.0+cu126", "12.6", True, ("sm_50", "sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_90"))
LAPTOP = Facts(
    system="Linux",
    machine="x86_64",
    python=(3, 12, 1),
    pidfd=True,
    open_files_limit=1_048_576,
    available_memory_bytes=16_000_000_000,
    free_disk_bytes=80_000_000_000,
    home="/home/ada/gshare/.gshare",
    longest_socket_path_bytes=80,
    port=8080,
    port_free=True,
    running=False,
    torch=Torch("2.13.0+cpu"),
    gpus=(),
    driver_cuda=(0, 0),
    mps_control="",
    mps_setting="auto",
)
SERVER = replace(
    LAPTOP, torch=CUDA_13, gpus=(H200,), driver_cuda=(13, 0), mps_control="/usr/bin/nvidia-cuda-mps-control"
)


def complaints(facts: Facts) -> list[Finding]:
    return [finding for finding in examine(facts) if finding.level is not Level.OK]


@pytest.mark.parametrize("facts", [LAPTOP, SERVER], ids=["laptop", "server"])
def test_a_sound_machine_has_nothing_to_complain_of(facts: Facts) -> None:
    assert complaints(facts) == []


@pytest.mark.parametrize(
    ("change", "level", "text", "remedy"),
    [
        ({"system": "Darwin", "machine": "arm64"}, Level.PROBLEM, "Darwin on arm64", "use Linux"),
        ({"machine": "armv7l"}, Level.PROBLEM, "Linux on armv7l", "x86_64 or aarch64"),
        ({"python": (3, 10, 2)}, Level.PROBLEM, "3.10.2", "Python 3.11 or newer"),
        ({"pidfd": False}, Level.PROBLEM, "pidfd_open does not work", "Linux 5.3"),
        ({"open_files_limit": 1024}, Level.WARNING, "1024", "ulimit -Hn"),
        ({"available_memory_bytes": 2_000_000_000}, Level.WARNING, "2.0 GB available", "FUNCTIONS=resnet50"),
        ({"free_disk_bytes": 500_000_000}, Level.WARNING, "0.5 GB free", "GSHARE_HOME"),
        ({"longest_socket_path_bytes": 120}, Level.PROBLEM, "120 of 107 bytes", "shorter path"),
        ({"port_free": False}, Level.PROBLEM, "8080 is taken", "GSHARE_PORT="),
        ({"torch": None}, Level.PROBLEM, "not installed", "make up"),
        ({"torch": Torch(error="libgomp.so.1: not found")}, Level.PROBLEM, "libgomp.so.1", "rm -r .venv"),
    ],
)
def test_each_lack_is_named_with_what_mends_it(change: dict[str, object], level: Level, text: str, remedy: str) -> None:
    (found,) = complaints(replace(LAPTOP, **change))  # type: ignore[arg-type]

    assert found.level is level
    assert text in found.text
    assert remedy in found.remedy


def test_a_port_taken_by_our_own_gateway_is_as_it_should_be() -> None:
    assert complaints(replace(LAPTOP, port_free=False, running=True)) == []


def test_a_v100_under_a_build_without_its_kernels_gets_the_line_that_mends_it() -> None:
    (found,) = complaints(replace(SERVER, gpus=(V100,)))

    assert found.name == "GPU GPU-v100"
    assert "Tesla V100-SXM2-16GB is sm_70; torch 2.13.0 was built for sm_75 sm_80" in found.text
    assert found.remedy.startswith("make up GSHARE_TORCH_INDEX=")
    assert "cu126" in found.remedy


def test_a_v100_under_the_cu126_build_is_sound() -> None:
    assert complaints(replace(SERVER, gpus=(V100,), torch=CUDA_12_6)) == []


def test_of_two_gpus_only_the_unsupported_one_is_complained_of() -> None:
    assert [found.name for found in complaints(replace(SERVER, gpus=(H200, V100)))] == ["GPU GPU-v100"]


def test_a_cpu_build_on_a_machine_with_gpus_is_a_warning() -> None:
    (found,) = complaints(replace(SERVER, torch=Torch("2.13.0+cpu")))

    assert found.level is Level.WARNING
    assert "is a CPU build, but there are GPUs" in found.text


def test_a_driver_older_than_the_build_is_told_with_both_versions() -> None:
    blind = Torch("2.13.0", "13.0", cuda_available=False)

    (found,) = complaints(replace(SERVER, torch=blind, driver_cuda=(12, 4)))

    assert "(CUDA 13.0) sees no GPU; the driver speaks CUDA up to 12.4" in found.text
    assert "cu128" in found.remedy


def test_gpus_without_mps_share_time_only() -> None:
    (found,) = complaints(replace(SERVER, mps_control=""))

    assert (found.level, found.name) == (Level.WARNING, "MPS")
    assert "install the driver's compute utilities" in found.remedy


def test_without_mps_a_machine_that_requires_it_has_a_problem_and_one_that_does_without_has_none() -> None:
    (found,) = complaints(replace(SERVER, mps_control="", mps_setting="required"))

    assert (found.level, found.name) == (Level.PROBLEM, "MPS")
    assert complaints(replace(SERVER, mps_control="", mps_setting="off")) == []


def test_an_mps_daemon_that_does_not_answer_is_told_in_its_own_words() -> None:
    well, silent = MpsFact("GPU-1"), MpsFact("GPU-2", "MPS for GPU-2 (pipe directory /p): no answer", "see /l")

    assert complaints(replace(SERVER, mps_daemons=(well,))) == []
    (found,) = complaints(replace(SERVER, mps_daemons=(well, silent)))

    assert (found.text, found.remedy) == (silent.trouble, silent.remedy)


@pytest.mark.parametrize(
    ("capability", "arch_list", "runs"),
    [
        ((8, 0), ("sm_80",), True),
        ((8, 9), ("sm_86",), True),
        ((8, 0), ("sm_86",), False),
        ((9, 0), ("sm_86",), False),
        ((9, 0), ("compute_80",), True),
        ((7, 0), ("compute_80",), False),
        ((9, 0), ("sm_90a",), True),
        ((10, 3), ("sm_100",), True),
        ((10, 3), ("sm_100a",), False),
        ((10, 3), ("sm_100f",), True),
        ((12, 0), ("sm_100", "sm_120"), True),
        ((7, 0), (), False),
        ((7, 0), ("gfx90a",), False),
    ],
)
def test_machine_code_runs_on_its_own_generation_and_ptx_on_newer_ones(
    capability: tuple[int, int], arch_list: tuple[str, ...], runs: bool
) -> None:
    assert runs_on(capability, arch_list) is runs
