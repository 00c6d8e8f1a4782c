"""What a replica is started with."""

from __future__ import annotations

from pathlib import Path

import msgspec
from gshare.config import ReplicaConfig
from gshare.wire import LiveConfig

from gateway_plugin.model import Device, Place, ReplicaSpec
from gateway_plugin.node.launch import Launch, launch_of
from gateway_plugin.paths import Paths

PATHS = Paths(Path("/h"))
CPU = Device(id="cpu:0", kind="cpu", units=2, memory_bytes=1, cores=(4, 6))
GPU = Device(id="GPU-1", kind="V100", units=40, memory_bytes=1)
SPEC = ReplicaSpec(
    id="f-1",
    function="f.openfaas-fn",
    revision="r",
    code_digest="d",
    slot=0,
    env={"TOP_K": "3", "PATH": "/mine"},
    weights="random:0",
    sm_partition=24,
    place=Place("cpu:0", (1,)),
    live=LiveConfig(0.2, 0.8, 1024, 69.0, 4, 2.5),
)


def launch(spec: ReplicaSpec = SPEC, device: Device | None = CPU, **base: str) -> Launch:
    return launch_of(
        spec,
        paths=PATHS,
        device=device,
        device_env={"CUDA_VISIBLE_DEVICES": "GPU-1"} if device is GPU else {},
        credential="secret",
        weights_root=Path("/w"),
        exec_timeout_s=90,
        base_env={"PATH": "/bin", "HOME": "/root", "GSHARE_PORT": "1", **base},
    )


def test_the_runtime_reads_back_exactly_what_the_agent_was_told() -> None:
    config = ReplicaConfig.from_env(launch().env)
    assert (config.function, config.replica, config.revision) == ("f.openfaas-fn", "f-1", "r")
    assert (config.device, config.cpus, config.sm_partition) == ("cpu:0", "6", 24)
    assert config.live() == SPEC.live
    assert config.bind == "unix:/h/run/replicas/f-1/http.sock"
    assert config.node_socket == "/h/run/replicas/f-1/node.sock"
    assert config.credential == "secret"
    assert config.exec_timeout_s == 90


def test_the_functions_environment_is_passed_on_and_the_plugins_own_settings_are_not() -> None:
    env = launch().env
    assert (env["TOP_K"], env["PATH"], env["HOME"], env["MODEL_WEIGHTS"]) == ("3", "/mine", "/root", "random:0")
    assert "GSHARE_PORT" not in env


def test_the_functions_own_exec_timeout_goes_before_the_gateways() -> None:
    own = msgspec.structs.replace(SPEC, env={"exec_timeout": "5m"})

    assert ReplicaConfig.from_env(launch(own).env).exec_timeout_s == 300


def test_the_functions_snapshot_comes_before_the_templates_starter() -> None:
    search = launch().env["PYTHONPATH"].split(":")
    assert search[0] == "/h/code/d"
    assert search[1].endswith("template/python3-gshare")


def test_what_the_device_needs_goes_before_the_functions_own_and_the_agents_environment() -> None:
    own = msgspec.structs.replace(SPEC, env={"CUDA_VISIBLE_DEVICES": "7"})

    env = launch(own, GPU, CUDA_MPS_PIPE_DIRECTORY="/of-somebody-else", CUDA_VISIBLE_DEVICES="3").env

    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert "CUDA_MPS_PIPE_DIRECTORY" not in env
    assert ReplicaConfig.from_env(env).cpus == ""


def test_a_plain_function_has_no_device() -> None:
    assert "GSHARE_DEVICE" not in launch(device=None).env
