from __future__ import annotations

import base64
import io
import json

import numpy as np
import pytest
from gshare.errors import BadInput
from gshare.inputs.classification import read_image_question, top_predictions
from gshare.request import Request, Upload
from PIL import Image
from werkzeug.datastructures import Headers, MultiDict

LABELS = 10


def png(colour: str = "red") -> bytes:
    stream = io.BytesIO()
    Image.new("RGB", (2, 2), colour).save(stream, "PNG")
    return stream.getvalue()


def as_json(**fields: object) -> Request:
    return Request(body=json.dumps(fields).encode(), headers=Headers({"Content-Type": "application/json"}))


def as_form(**files: bytes) -> Request:
    headers = Headers({"Content-Type": "multipart/form-data; boundary=x"})
    return Request(
        body=b"form", headers=headers, files={name: Upload(name, "image/png", data) for name, data in files.items()}
    )


PICTURE = base64.b64encode(png()).decode()


@pytest.mark.parametrize(
    "request_",
    [
        Request(body=png()),
        Request(body=png(), headers=Headers({"Content-Type": "application/x-www-form-urlencoded"})),
        as_json(image=PICTURE),
        as_json(image=f"data:image/png;base64,{PICTURE}"),
        Request(body=json.dumps({"image": PICTURE}).encode()),
        as_form(photo=png()),
        as_form(other=png("blue"), image=png()),
    ],
    ids=["bytes", "curl --data-binary", "json", "data url", "curl -d", "form", "form with several files"],
)
def test_a_picture_comes_in_each_of_three_forms(request_: Request) -> None:
    asked = read_image_question(request_, labels=LABELS)

    assert asked.data == png()
    assert asked.top_k == 5


@pytest.mark.parametrize(
    ("request_", "top_k"),
    [
        (as_json(image=PICTURE, top_k=3), 3),
        (Request(body=png(), query=MultiDict({"top_k": "10"})), 10),
        (Request(body=as_json(image=PICTURE, top_k=2).body, query=MultiDict({"top_k": "4"})), 2),
    ],
)
def test_the_number_of_labels_is_asked_in_the_body_or_the_query(request_: Request, top_k: int) -> None:
    assert read_image_question(request_, labels=LABELS).top_k == top_k


def test_a_model_with_fewer_labels_than_the_default_gives_all_it_has() -> None:
    assert read_image_question(Request(body=png()), labels=2).top_k == 2


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (as_json(image=PICTURE, top_k=11), r"top_k=11: a whole number, 1–10"),
        (as_json(image=PICTURE, top_k=0), r"at `\$.top_k`"),
        (Request(body=png(), query=MultiDict({"top_k": "many"})), "top_k='many': a whole number"),
        (Request(body=png(), query=MultiDict({"top_k": "-1"})), "top_k='-1'"),
        (as_json(image="not base64!"), "image: not base64"),
        (as_json(picture=PICTURE), "the JSON body does not fit"),
        (as_json(image=PICTURE, topk=3), "unknown field `topk`"),
        (as_form(), "the form has no file"),
        (as_form(a=png(), b=png()), r"several files \(a, b\); call the one that is meant image"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_to_send(request_: Request, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        read_image_question(request_, labels=LABELS)


def test_the_best_labels_come_first_and_equal_ones_by_index() -> None:
    scores = np.array([0.1, 0.3, 0.3, 0.2], np.float32)

    best = top_predictions(scores, 3, id2label={n: f"label {n}" for n in range(4)})

    assert [(p.index, p.label) for p in best] == [(1, "label 1"), (2, "label 2"), (3, "label 3")]
