"""What a deployment may say, and what a refusal tells its author."""

from __future__ import annotations

from typing import Any

import pytest

from gateway_plugin.errors import BadRequest
from gateway_plugin.model import FunctionSpec
from gateway_plugin.openfaas.validation import ENV_ENTRY_BYTES, validate


def spec(**changes: Any) -> FunctionSpec:
    return FunctionSpec(**{"service": "echo", "image": "gshare/echo:1", **changes})


def refusal(**changes: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        validate(spec(**changes))
    return str(caught.value)


@pytest.mark.parametrize("name", ["my_project", "ABC", "-a", "a-", "a" * 64, "", "a.b", "ünïcode", "a\n"])
def test_a_name_outside_the_rule_is_refused_with_the_rule(name: str) -> None:
    text = refusal(service=name)
    assert repr(name) in text
    assert "[a-z0-9]([-a-z0-9]*[a-z0-9])?" in text


@pytest.mark.parametrize("name", ["1a-b2", "a", "a" * 63])
def test_a_name_within_the_rule_is_accepted(name: str) -> None:
    validate(spec(service=name))


@pytest.mark.parametrize("namespace", ["", "openfaas-fn"])
def test_the_default_namespace_may_be_written_or_left_out(namespace: str) -> None:
    validate(spec(namespace=namespace))


def test_another_namespace_is_refused_naming_the_one_that_exists() -> None:
    assert "'team-a'" in refusal(namespace="team-a")
    assert "openfaas-fn" in refusal(namespace="team-a")


@pytest.mark.parametrize("image", ["", " ", "a b", "-x", "a\nb"])
def test_an_image_that_is_no_name_is_refused(image: str) -> None:
    assert refusal(image=image).startswith(f"image: {image!r}")


@pytest.mark.parametrize("image", ["a", "registry.example:5000/team/echo:1.2@sha256:" + "0" * 64])
def test_an_image_with_registry_tag_and_digest_is_accepted(image: str) -> None:
    validate(spec(image=image))


@pytest.mark.parametrize(
    "name",
    [
        "GSHARE_DEVICE",
        "CUDA_MPS_PIPE_DIRECTORY",
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "LD_PRELOAD",
        "PYTHONPATH",
        "GUNICORN_CMD_ARGS",
    ],
)
def test_environment_that_belongs_to_the_node_is_refused_with_what_is_reserved(name: str) -> None:
    text = refusal(env_vars={name: "x"})
    assert name in text
    assert "CUDA_VISIBLE_DEVICES, GSHARE_*, CUDA_MPS_*, NVIDIA_*, LD_*, PYTHON*" in text


@pytest.mark.parametrize("name", ["MODEL", "write_timeout", "OMP_NUM_THREADS", "HF_HOME", "a.b-c"])
def test_a_functions_own_environment_is_accepted(name: str) -> None:
    validate(spec(env_vars={name: "any text = at all\n"}))


@pytest.mark.parametrize("name", ["", "1A", "A B", "A=B"])
def test_what_cannot_be_a_variables_name_is_refused(name: str) -> None:
    assert repr(name) in refusal(env_vars={name: "x"})


def test_environment_is_limited_to_what_a_process_can_be_started_with() -> None:
    fits = "x" * (ENV_ENTRY_BYTES - len("A="))
    validate(spec(env_vars={"A": fits}))
    assert str(ENV_ENTRY_BYTES) in refusal(env_vars={"A": fits + "x"})
    assert "NUL" in refusal(env_vars={"A": "\0"})


@pytest.mark.parametrize("value", ["", "a", "1.0", "true", "5m", "A_b-c.d", "x" * 63])
def test_label_values_by_kubernetes_rule_are_accepted(value: str) -> None:
    validate(spec(labels={"team.example/owner": value}))


@pytest.mark.parametrize("value", ["a b", "-a", "a-", "x" * 64, "ä", "a/b"])
def test_other_label_values_are_refused_with_key_value_and_rule(value: str) -> None:
    text = refusal(labels={"owner": value})
    assert text.startswith(f"label owner: {value!r}")
    assert "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?" in text


@pytest.mark.parametrize("key", ["", "a b", "/a", "UPPER.Example/a", "a/b/c", "x" * 64])
def test_label_and_annotation_keys_follow_kubernetes_rule(key: str) -> None:
    assert repr(key) in refusal(labels={key: "v"})
    assert repr(key) in refusal(annotations={key: "v"})


def test_scale_labels_are_checked_for_kind_range_and_order() -> None:
    assert "com.openfaas.scale.max: 'ten'" in refusal(labels={"com.openfaas.scale.max": "ten"})
    assert "1–1000" in refusal(labels={"com.openfaas.scale.min": "0"})
    crossed = {"com.openfaas.scale.min": "5", "com.openfaas.scale.max": "2"}
    assert "com.openfaas.scale.min: 5 is above com.openfaas.scale.max (2)" in refusal(labels=crossed)


def test_a_share_among_labels_is_refused_with_the_annotation_meant() -> None:
    assert "write fastgshare/gpu_mem under annotations" in refusal(labels={"fastgshare/gpu_memory": "2Gi"})


@pytest.mark.parametrize(
    ("annotation", "value", "hint"),
    [
        ("fastgshare/gpu_sm_partition", "0.24", "percent: did you mean 24?"),
        ("fastgshare/gpu_quota_limit", "80", "did you mean 0.8?"),
        ("fastgshare/gpu_mem", "2700", "did you mean 2700M?"),
        ("fastgshare/quota_limit", "0.5", "did you mean fastgshare/gpu_quota_limit?"),
        ("fastgshare/weights", "pickle:x", "random:SEED"),
    ],
)
def test_a_bad_share_is_refused_with_key_value_and_what_was_meant(annotation: str, value: str, hint: str) -> None:
    text = refusal(annotations={annotation: value})
    assert annotation in text
    assert repr(value) in text
    assert hint in text


def test_annotations_of_others_hold_any_text_up_to_kubernetes_limit() -> None:
    validate(spec(annotations={"topic": "any text, with spaces\nand lines"}))
    assert "262144" in refusal(annotations={"topic": "x" * 262144})


def test_weights_may_come_from_environment_or_annotation_but_not_differ() -> None:
    annotated = {"fastgshare/weights": "random:1"}
    validate(spec(annotations=annotated))
    validate(spec(env_vars={"MODEL_WEIGHTS": "random:1"}))
    validate(spec(annotations=annotated, env_vars={"MODEL_WEIGHTS": "random:1"}))
    text = refusal(annotations=annotated, env_vars={"MODEL_WEIGHTS": "random:2"})
    assert "'random:1'" in text
    assert "'random:2'" in text
    assert "MODEL_WEIGHTS: 'nonsense'" in refusal(env_vars={"MODEL_WEIGHTS": "nonsense"})


@pytest.mark.parametrize("quantity", ["512Mi", "500m", "1", "0.5", "2G", "1e3", ""])
def test_kubernetes_quantities_are_accepted(quantity: str) -> None:
    validate(spec(limits={"memory": quantity}, requests={"cpu": quantity}))


@pytest.mark.parametrize("quantity", ["-1", "1 Gi", "lots", "1Gb", "½"])
def test_other_quantities_are_refused_with_kind_key_and_value(quantity: str) -> None:
    assert refusal(limits={"memory": quantity}).startswith(f"limits.memory: {quantity!r}")
    assert refusal(requests={"cpu": quantity}).startswith(f"requests.cpu: {quantity!r}")


def test_a_secret_is_refused_by_its_name() -> None:
    assert "no such secret: 'hub-token'" in refusal(secrets=["hub-token"])
