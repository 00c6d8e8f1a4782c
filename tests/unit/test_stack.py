"""stack.yml as faas-cli reads it, and what a broken one says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from gateway_plugin.errors import StackError
from gateway_plugin.model import FunctionSpec
from gateway_plugin.stack import Stack, find_stack, read_stack

HEAD = "version: 1.0\nprovider:\n  name: openfaas\n  gateway: http://gateway.example:8080\n"
REPOSITORY = Path(__file__).parents[2]


class Folder:
    """A folder with a stack file in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def stack(self, functions: str, *, names: tuple[str, ...] = (), env: Mapping[str, str] | None = None) -> Stack:
        return read_stack(self.write("stack.yml", f"{HEAD}functions:\n{functions}"), env or {}, names=names)

    def echo(self, entry: str, **env: str) -> FunctionSpec:
        """The deployment of function echo, its keys indented by four."""
        (function,) = self.stack(f"  echo:\n    image: gshare/echo:1\n{entry}", env=env).functions
        return function.spec

    def fault(self, text: str) -> str:
        with pytest.raises(StackError) as caught:
            read_stack(self.write("stack.yml", text), {})
        return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_the_repositorys_own_stack_is_good_and_fits_one_device() -> None:
    stack = read_stack(REPOSITORY / "stack.yml", {})
    names = [function.spec.service for function in stack.functions]
    assert names == ["resnet50", "resnext", "vit", "bert", "rnnt", "gnmt"]
    assert all(function.skip_build for function in stack.functions)
    assert [function.spec.image for function in stack.functions] == [f"gshare/{name}:latest" for name in names]
    shares = [function.spec.share_request().share for function in stack.functions]
    assert {share.sm_partition for share in shares} == {24}
    assert sum(share.quota_request for share in shares) == pytest.approx(1.0)


def test_the_repositorys_own_stack_follows_its_variables() -> None:
    env = {"GSHARE_SKIP_BUILD": "false", "GSHARE_IMAGE_PREFIX": "registry.example/team", "GSHARE_TAG": "7"}
    function, *_ = read_stack(REPOSITORY / "stack.yml", env).functions
    assert function.spec.image == "registry.example/team/resnet50:7"
    assert not function.skip_build


def test_every_key_of_an_entry_is_carried_into_the_deployment(folder: Folder) -> None:
    spec = folder.echo(
        "    fprocess: python index.py\n"
        "    namespace: openfaas-fn\n"
        "    environment:\n      MODEL: a\n"
        "    constraints:\n      - zone=b\n"
        "    labels:\n      owner: me\n"
        "    annotations:\n      topic: any text\n"
        "    limits:\n      memory: 512Mi\n      nvidia.com/gpu: 1\n"
        "    requests:\n      cpu: 100m\n"
        "    readonly_root_filesystem: true\n"
        "    build_args:\n      A: 1\n    nobody_knows: [1]\n"
    )
    assert spec == FunctionSpec(
        service="echo",
        image="gshare/echo:1",
        namespace="openfaas-fn",
        env_process="python index.py",
        env_vars={"MODEL": "a"},
        constraints=["zone=b"],
        labels={"owner": "me"},
        annotations={"topic": "any text"},
        limits={"memory": "512Mi"},
        requests={"cpu": "100m"},
        read_only_root_filesystem=True,
    )


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("true", "true"),
        ("True", "True"),
        ("yes", "yes"),
        ("0.90", "0.90"),
        ("1e3", "1e3"),
        ("0x10", "0x10"),
        ("012", "012"),
        ("2026-01-01", "2026-01-01"),
        ("'~'", "~"),
        ("~", ""),
        ("null", ""),
        ("", ""),
        ("nullify", "nullify"),
    ],
)
def test_scalars_are_kept_as_they_are_written(folder: Folder, written: str, meant: str) -> None:
    assert folder.echo(f"    environment:\n      A: {written}\n").env_vars == {"A": meant}


def test_variables_are_substituted_and_empty_counts_as_unset(folder: Folder) -> None:
    entry = "    environment:\n      A: ${A}\n      B: ${B:-b}\n      C: ${C:-c}\n      D: ${D}\n      E: $E ${E:-}\n"
    env_vars = folder.echo(entry, A="1", B="", C="3").env_vars
    assert env_vars == {"A": "1", "B": "b", "C": "3", "D": "", "E": "$E"}


@pytest.mark.parametrize("form", ["${A:=b}", "${}", "${A-b}", "${A"])
def test_another_form_of_substitution_is_refused_with_its_line(folder: Folder, form: str) -> None:
    text = folder.fault(f"{HEAD}functions:\n  echo:\n    image: {form}\n")
    assert f"line 7: {form!r}" in text
    assert "${NAME:-default}" in text


def test_environment_files_win_over_environment_and_later_ones_over_earlier(folder: Folder) -> None:
    folder.write("one.yml", "environment:\n  A: one\n  B: one\n  T: ${X}\n")
    folder.write("env/two.yml", "environment:\n  B: two\n  N: 1\n")
    entry = (
        "    environment:\n      A: zero\n      Z: zero\n    environment_file:\n      - one.yml\n      - env/two.yml\n"
    )
    assert folder.echo(entry).env_vars == {"A": "one", "B": "two", "N": "1", "T": "${X}", "Z": "zero"}


def test_the_process_comes_from_a_template_that_is_there(folder: Folder) -> None:
    entry = "    lang: python3-gshare\n"
    assert folder.echo(entry).env_process == ""
    folder.write("template/python3-gshare/template.yml", "language: python3-gshare\nfprocess: python index.py\n")
    assert folder.echo(entry).env_process == "python index.py"
    assert folder.echo(entry + "    fprocess: python other.py\n").env_process == "python other.py"
    assert folder.echo("    lang: ../template/python3-gshare\n").env_process == ""


def test_anchors_and_merges_work_as_in_any_yaml(folder: Folder) -> None:
    stack = folder.stack(
        "  a: &base\n    image: gshare/a:1\n    labels: {owner: me}\n  b:\n    <<: *base\n    image: gshare/b:1\n"
    )
    assert [function.spec.image for function in stack.functions] == ["gshare/a:1", "gshare/b:1"]
    assert stack.functions[1].spec.labels == {"owner": "me"}


def test_handler_and_gateway_are_told(folder: Folder) -> None:
    stack = folder.stack("  echo:\n    image: a\n    handler: ./echo\n    skip_build: true\n  bare:\n    image: b\n")
    assert stack.gateway == "http://gateway.example:8080"
    assert [(function.handler, function.skip_build) for function in stack.functions] == [
        (folder.path / "echo", True),
        (None, False),
    ]


def test_names_choose_functions_and_the_others_are_not_checked(folder: Folder) -> None:
    functions = "  a:\n    image: gshare/a:1\n  b:\n    image: ''\n"
    assert [f.spec.service for f in folder.stack(functions, names=("a",)).functions] == ["a"]
    with pytest.raises(StackError, match="no function c, d; there are a, b"):
        folder.stack(functions, names=("d", "a", "c"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("functions:\n  a: [\n", "line 3: not YAML"),
        ("a: b: c\n", "line 1: not YAML"),
        ("a:\n\t- b\n", "line 2: not YAML"),
        ("a: 1\nb: 2\na: 3\n", "line 3: not YAML: key 'a' is written twice"),
        ("a: !!python/object:os.system {}\n", "line 1: not YAML"),
        ("a: \x07\n", "not YAML"),
        ("", "None is not accepted"),
        ("- a\n", "['a'] is not accepted"),
        ("version: 2.0\nprovider: {name: openfaas}\n", "version: '2.0' is not accepted; write 1.0"),
        ("provider: {name: other}\n", "provider.name: 'other' is not accepted; write openfaas"),
        ("functions: {}\n", "provider.name: '' is not accepted"),
        ("provider: openfaas\n", "provider: 'openfaas' is not accepted"),
        (HEAD, "functions: none"),
        (f"{HEAD}functions:\n  a: x\n", "function a: 'x' is not accepted"),
        (f"{HEAD}functions:\n  a:\n    image: [b]\n", "function a: image: ['b'] is not accepted; write text"),
        (f"{HEAD}functions:\n  a:\n    image: b\n    skip_build: x\n", "function a: skip_build: 'x'"),
        (f"{HEAD}functions:\n  a:\n    image: b\n    secrets: x\n", "function a: secrets: 'x' is not accepted"),
        (f"{HEAD}functions:\n  a:\n    image: b\n    labels: {{c: [d]}}\n", "function a: labels.c: ['d']"),
        (f"{HEAD}functions:\n  a:\n    image: b\n    labels: [c]\n", "function a: labels: ['c']"),
        (f"{HEAD}functions:\n  a:\n    image: b\n    environment_file: [no.yml]\n", "no.yml: cannot be read"),
        (f"{HEAD}functions:\n  A_b:\n    image: b\n", "function A_b: service: 'A_b'"),
        (
            f"{HEAD}functions:\n  a:\n    image: b\n    annotations: {{fastgshare/gpu_mem: 2700}}\n",
            "function a: fastgshare/gpu_mem: '2700' is not accepted",
        ),
    ],
)
def test_a_broken_file_is_refused_naming_file_place_and_value(folder: Folder, text: str, told: str) -> None:
    fault = folder.fault(text)
    assert fault.startswith(f"{folder.path}/")
    assert told in fault


def test_all_functions_that_cannot_be_deployed_are_named_at_once(folder: Folder) -> None:
    fault = folder.fault(f"{HEAD}functions:\n  a:\n    image: ''\n  b:\n    image: b\n  c:\n    image: ' '\n")
    assert [line.split(": ")[1] for line in fault.splitlines()] == ["function a", "function c"]


def test_a_file_that_is_missing_or_no_text_is_named(folder: Folder) -> None:
    with pytest.raises(StackError, match=r"absent\.yml: cannot be read"):
        read_stack(folder.path / "absent.yml", {})
    (folder.path / "binary.yml").write_bytes(b"\xff\xfe")
    with pytest.raises(StackError, match=r"binary\.yml: cannot be read"):
        read_stack(folder.path / "binary.yml", {})


def test_the_newer_file_name_is_found_first(folder: Folder) -> None:
    with pytest.raises(StackError, match=r"no stack\.yaml or stack\.yml"):
        find_stack(folder.path)
    older = folder.write("stack.yml", HEAD)
    assert find_stack(folder.path) == older
    newer = folder.write("stack.yaml", HEAD)
    assert find_stack(folder.path) == newer
