"""The page on the Open Inference Protocol is run: its examples, and its table against what functions declare."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest
from gshare.openinference.decoding import MAX_ITEMS, MAX_JSON_NUMBERS
from werkzeug.serving import make_server

from gateway_plugin.docs_pages import DOCS
from tests.open_inference import json_body, read_outputs, tensor
from tests.served_app import FUNCTIONS, served
from tests.tiny_functions import TINY_FUNCTIONS

PAGE = (DOCS / "open-inference.md").read_text(encoding="utf-8")
TINY = {function.name: function for function in TINY_FUNCTIONS}


def examples(language: str) -> list[str]:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found


@contextmanager
def at_port(name: str) -> Iterator[str]:
    """HOST:PORT of a small replica."""
    function = TINY[name]
    with served(function.folder, function.env()) as client:
        server = make_server("127.0.0.1", 0, client.application, threaded=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
        server.server_close()


def curl(command: str, name: str, folder: Path) -> bytes:
    with at_port(name) as address:
        local = command.replace(f"127.0.0.1:8080/function/{name}", address)
        return subprocess.check_output(["sh", "-c", f"{local} --silent --fail"], cwd=folder)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl here")
def test_the_curl_lines_are_answered(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").write_bytes((FUNCTIONS / "resnet50" / "sample.jpg").read_bytes())
    question, picture = (lines for lines in examples("sh") if lines.startswith("curl"))

    assert b'"model_name":"bert"' in curl(question.strip(), "bert", tmp_path)
    assert b'"model_name":"resnet50"' in curl(picture.strip(), "resnet50", tmp_path)


def test_the_clients_lines_run(tmp_path: Path) -> None:
    for name in ("one.jpg", "two.jpg"):
        (tmp_path / name).write_bytes((FUNCTIONS / "resnet50" / "sample.jpg").read_bytes())
    lines = examples("python")[0] + "print(labels.shape, scores.shape)"
    with at_port("resnet50") as address:
        lines = lines.replace("127.0.0.1:8080/function/resnet50", address)
        printed = subprocess.check_output([sys.executable, "-c", lines], cwd=tmp_path, text=True)

    assert printed == "(2, 3) (2, 3)\n"


def test_the_function_of_the_page_takes_and_gives_tensors() -> None:
    with served(examples("python")[1]) as client:
        body = json_body(tensor("x", "FP32", [2, 2], data=[1, 2, 3, 4]))
        answer = client.post("/v2/models/tested/infer", data=body.data)

    assert read_outputs(answer.data, dict(answer.headers))["double"].tolist() == [[2, 4], [6, 8]]


@pytest.mark.parametrize("name", [name for name in TINY if name not in ("resnext", "vit")])
def test_the_table_names_what_a_function_declares(name: str) -> None:
    function = TINY[name]
    (row,) = (line for line in PAGE.splitlines() if re.match(rf"\| {name}[ ,|]", line))
    with served(function.folder, function.env()) as client:
        described = client.get(f"/v2/models/{name}").get_json()

    declared = {one["name"] for one in described["inputs"] + described["outputs"]} - {"input", "reply"}
    assert set(re.findall(r"`(\w+)`", row)) == declared


def test_limits_are_those_of_the_source() -> None:
    assert f"n is 1 to {MAX_ITEMS}." in PAGE
    assert f"at most {MAX_JSON_NUMBERS:,} numbers" in PAGE
